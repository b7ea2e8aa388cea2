#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

namespace uper {

struct TaskQueueOptions {
  int workers = 1;
  int capacity = 1;  // tasks that have not started
  // How often an idle worker looks for a task before it sleeps (ThreadPoolOptions).
  int idle_spins = 1000;
};

// Threads that run numbered tasks in the order in which the owner adds them, while the owner goes
// on. ThreadPool runs a list of tasks and returns when all are done; here tasks may be added at any
// time, and each task must report its own end. Adding allocates nothing; idle workers spin briefly
// and then sleep. Denormals are flushed to zero in all tasks.
//
// Thread safety: one thread adds tasks.
class TaskQueue {
 public:
  // run(task) must not throw. Throws Error(kResources) if a worker cannot be started.
  TaskQueue(const TaskQueueOptions& options, std::function<void(int)> run);
  // Waits for running tasks and drops those that have not started.
  ~TaskQueue();
  TaskQueue(const TaskQueue&) = delete;
  TaskQueue& operator=(const TaskQueue&) = delete;

  int workers() const { return static_cast<int>(threads_.size()); }

  // The task sees all earlier writes of the caller. REQUIRES: fewer than `capacity` tasks wait.
  void Add(int task);
  // Runs the next waiting task in the calling thread. Returns false if there is none.
  bool RunOne();

 private:
  void Stop();
  bool Take(int& task);
  void Work();

  const std::function<void(int)> run_;
  const int idle_spins_;

  // Tasks [taken_, added_) are waiting; task number n is in ring_[n % size].
  std::vector<std::atomic<int>> ring_;
  alignas(64) std::atomic<std::uint64_t> added_{0};
  alignas(64) std::atomic<std::uint64_t> taken_{0};

  alignas(64) std::atomic<std::uint32_t> signal_{0};  // counts additions; sleepers wait on it
  std::atomic<int> sleepers_{0};
  std::atomic<bool> stop_{false};

  std::vector<std::jthread> threads_;  // last: they end before the members they use
};

}  // namespace uper
