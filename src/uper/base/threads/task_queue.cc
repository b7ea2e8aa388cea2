#include "uper/base/threads/task_queue.h"

#include <utility>

#include "uper/base/check.h"
#include "uper/base/threads/spin_wait.h"
#include "uper/base/threads/start_threads.h"
#include "uper/base/threads/thread_pool.h"

namespace uper {

TaskQueue::TaskQueue(const TaskQueueOptions& options, std::function<void(int)> run)
    : run_(std::move(run)), idle_spins_(options.idle_spins), ring_(options.capacity) {
  UPER_CHECK(options.workers >= 0 && options.capacity >= 1, "a queue without room");
  threads_ = StartThreads(options.workers, [this](int) { Work(); }, [this] { Stop(); });
}

TaskQueue::~TaskQueue() { Stop(); }

void TaskQueue::Stop() {
  stop_ = true;
  ++signal_;
  signal_.notify_all();
}

void TaskQueue::Add(int task) {
  const std::uint64_t number = added_.load(std::memory_order_relaxed);
  UPER_CHECK(number - taken_.load(std::memory_order_acquire) < ring_.size(), "no room for a task");
  ring_[number % ring_.size()].store(task, std::memory_order_relaxed);
  added_.store(number + 1, std::memory_order_release);
  signal_.fetch_add(1, std::memory_order_seq_cst);
  if (sleepers_.load(std::memory_order_seq_cst) > 0) signal_.notify_one();
}

bool TaskQueue::RunOne() {
  int task = 0;
  if (!Take(task)) return false;
  const ScopedFlushDenormals flush;
  run_(task);
  return true;
}

// The value read from the ring is valid only if its number is still the next one: a slot is
// refilled only after its number was taken.
bool TaskQueue::Take(int& task) {
  std::uint64_t number = taken_.load(std::memory_order_acquire);
  while (number < added_.load(std::memory_order_acquire)) {
    task = ring_[number % ring_.size()].load(std::memory_order_relaxed);
    if (taken_.compare_exchange_weak(number, number + 1, std::memory_order_acq_rel,
                                     std::memory_order_acquire)) {
      return true;
    }
  }
  return false;
}

void TaskQueue::Work() {
  const ScopedFlushDenormals flush;
  while (true) {
    const std::uint32_t signal = signal_.load(std::memory_order_seq_cst);
    for (int spin = 0; spin <= idle_spins_; ++spin) {
      if (stop_.load(std::memory_order_relaxed)) return;
      if (int task = 0; Take(task)) {
        run_(task);
        spin = -1;
        continue;
      }
      SpinOrYield(spin);
    }
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    signal_.wait(signal, std::memory_order_seq_cst);
    sleepers_.fetch_sub(1, std::memory_order_relaxed);
  }
}

}  // namespace uper
