#include "uper/base/threads/parallel.h"

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
#include "uper/base/threads/start_threads.h"

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

// Threads that begin together once all have started. If one cannot start, none does any work.
class Helpers {
 public:
  void Start(std::size_t count, const std::function<void()>& work) {
    const auto wait = [this, &work](int) {
      begin_.wait(kNotYet);
      if (begin_ == kNow) work();
    };
    threads_ = StartThreads(static_cast<int>(count), wait, [this] { Begin(kNever); });
    Begin(kNow);
  }

 private:
  enum State { kNotYet, kNow, kNever };
  void Begin(State state) {
    begin_ = state;
    begin_.notify_all();
  }
  std::atomic<State> begin_{kNotYet};
  std::vector<std::jthread> threads_;  // last: they end before the members they use
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
  if (count > 0) {
    const std::function<void()> run = work;
    Helpers helpers;
    helpers.Start(std::min<std::size_t>(jobs, count) - 1, run);
    work();
  }
  if (failure.exception) std::rethrow_exception(failure.exception);
  if (stop) throw Error(ErrorKind::kInterrupted, "interrupted");
}

}  // namespace uper
