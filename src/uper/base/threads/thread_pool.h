#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

namespace uper {

// Flushes denormal operands and results of this thread's float arithmetic to zero while it lives
// (x86: FTZ and DAZ, ARM: FZ; elsewhere no effect). The mode belongs to a thread. Denormal
// optimizer state makes arithmetic many times slower, so every computing thread must set it.
class ScopedFlushDenormals {
 public:
  ScopedFlushDenormals();
  ~ScopedFlushDenormals();
  ScopedFlushDenormals(const ScopedFlushDenormals&) = delete;
  ScopedFlushDenormals& operator=(const ScopedFlushDenormals&) = delete;

 private:
  std::uint64_t saved_;
};

struct ThreadPoolOptions {
  int threads = 1;  // including the caller
  // How often an idle worker looks for work before it sleeps. The caller looks as often for the end
  // of the last task. A look takes about 30 nanoseconds; the default outlasts the pauses between
  // the parallel parts of one update. After 6,000 looks a thread yields the core between looks,
  // which takes longer.
  int idle_spins = 1000;
};

// A few threads that run the tasks of one call at a time. Made for calls of some microseconds: a
// call allocates nothing, and idle workers spin briefly before they sleep. A preempted worker
// delays others only if it has started a task.
//
// Each thread begins with its own share of neighboring indices, so the data it wrote in one call is
// in its cache in the next. A thread that has finished its share takes tasks from others. The
// assignment of tasks to threads is not fixed: a task must depend on its index alone. Then results
// are the same for any number of threads. Denormals are flushed to zero in all tasks.
//
// Thread safety: one ParallelTasks() at a time, and none from inside a task.
class ThreadPool {
 public:
  // `threads` counts the caller: threads - 1 workers are started. REQUIRES: threads >= 1. Throws
  // Error(kResources) if one cannot be.
  explicit ThreadPool(int threads) : ThreadPool(ThreadPoolOptions{.threads = threads}) {}
  explicit ThreadPool(const ThreadPoolOptions& options);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(shares_.size()); }

  // Calls task(index) or task(index, thread) for all 0 <= index < count and returns when all are
  // done. No two tasks run with the same `thread` at the same time; 0 <= thread < threads(), for
  // scratch memory. If tasks throw, those not started are skipped and the exception of the lowest
  // index is rethrown. REQUIRES: 0 <= count < 2^16.
  template <typename Task>
  void ParallelTasks(int count, Task&& task) {
    using Function = std::remove_reference_t<Task>;
    const auto call = [](const void* function, int index, int thread) {
      auto& target = *static_cast<Function*>(const_cast<void*>(function));
      if constexpr (std::is_invocable_v<Function&, int, int>) {
        target(index, thread);
      } else {
        target(index);
      }
    };
    Run(count, call, &task);
  }

 private:
  using Call = void (*)(const void* function, int index, int thread);

  void Run(int count, Call call, const void* function);
  void Stop();
  void RunInline(int count, Call call, const void* function);
  void Publish(int count, Call call, const void* function);
  void AwaitCompletion(int count);
  // Runs tasks of the given job until none is left to start.
  void Work(std::uint32_t job, int thread);
  // Returns how many tasks it finished.
  int WorkOnShare(std::uint32_t job, int share, int thread);
  void RunOne(int index, int thread, Call call, const void* function);
  void RecordFailure(int index);
  void WorkerLoop(int thread);
  std::uint32_t AwaitJob(std::uint32_t seen_job, int thread);

  // The rest of one thread's share of the tasks, in one word: the job's number, the next task to
  // start and the end of the share. A task is claimed by raising `next`. The claim fails if the
  // word belongs to another job by then. So a late worker can never run a task with the data of
  // another job.
  struct alignas(64) Share {
    std::atomic<std::uint64_t> ticket{0};
  };
  std::vector<Share> shares_;  // [thread]; its size is constant after construction
  const int idle_spins_;

  // The job, written before the tickets announce it. The fields are atomic because a late worker
  // may read them while the next job is written. That worker then claims nothing and does not use
  // them.
  std::atomic<int> count_{0};
  std::atomic<Call> call_{nullptr};
  std::atomic<const void*> function_{nullptr};

  std::atomic<int> done_{0};               // tasks finished in this job
  std::atomic<bool> caller_waits_{false};  // the caller sleeps on done_
  std::atomic<std::uint32_t> signal_{0};   // counts jobs; sleeping workers wait on it
  std::atomic<int> sleepers_{0};
  std::atomic<bool> stop_{false};
  std::atomic<bool> busy_{false};  // a ParallelTasks() is under way

  std::atomic<bool> failed_{false};
  std::mutex failure_mutex_;
  int failed_index_ = 0;        // guarded by failure_mutex_
  std::exception_ptr failure_;  // guarded by failure_mutex_

  std::vector<std::jthread> workers_;  // last: they end before the members they use
};

}  // namespace uper
