#include "uper/base/parallel.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <fstream>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "uper/base/check.h"

namespace uper {
namespace {

// Cores granted by the cgroup's CPU quota; a large number without one.
int CgroupCores() {
  std::ifstream file("/sys/fs/cgroup/cpu.max");
  std::string quota;
  double period = 0;
  if (!(file >> quota >> period) || quota == "max" || period <= 0) return 1 << 20;
  return static_cast<int>(std::ceil(std::strtod(quota.c_str(), nullptr) / period));
}

// Remembers the exception of the lowest task index.
struct FirstFailure {
  std::mutex mutex;
  std::size_t index = 0;         // guarded by mutex
  std::exception_ptr exception;  // guarded by mutex
  std::atomic<bool> failed{false};

  void Record(std::size_t task_index) {
    const std::lock_guard lock(mutex);
    if (!exception || task_index < index) {
      index = task_index;
      exception = std::current_exception();
    }
    failed = true;
  }
};

}  // namespace

int AvailableCores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  const int allowed = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
  return std::max(1, std::min(allowed, CgroupCores()));
}

void ParallelFor(int jobs, std::size_t count, const StopFlag& stop,
                 const std::function<void(std::size_t)>& task) {
  UPER_CHECK(jobs >= 1, "at least one thread is needed");
  std::atomic<std::size_t> next{0};
  FirstFailure failure;
  const auto work = [&] {
    while (!stop && !failure.failed) {
      const std::size_t index = next++;
      if (index >= count) return;
      try {
        task(index);
      } catch (...) {
        failure.Record(index);
      }
    }
  };
  {
    std::vector<std::jthread> helpers;
    const std::size_t threads = std::min<std::size_t>(jobs, count);
    for (std::size_t i = 1; i < threads; ++i) helpers.emplace_back(work);
    work();
  }
  if (failure.exception) std::rethrow_exception(failure.exception);
  if (stop) throw Error(ErrorKind::kInterrupted, "interrupted");
}

}  // namespace uper
