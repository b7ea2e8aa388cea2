#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace uper {

// A thread that runs one function at a time for its owner. The thread starts with the first
// function. Only the owner calls; what the function does must not touch what the owner uses before
// Wait() has returned or busy() was false.
class BackgroundTask {
 public:
  BackgroundTask() = default;
  // Waits for the function under way; its exception is lost.
  ~BackgroundTask();
  BackgroundTask(const BackgroundTask&) = delete;
  BackgroundTask& operator=(const BackgroundTask&) = delete;

  // REQUIRES: nothing is under way.
  void Start(std::function<void()> function);
  bool busy() const;
  // Returns when nothing is under way; rethrows what the function threw, once.
  void Wait();

 private:
  void Loop();

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> function_;  // guarded by mutex_; empty: nothing to do
  bool busy_ = false;               // guarded by mutex_
  bool stop_ = false;               // guarded by mutex_
  std::exception_ptr failure_;      // guarded by mutex_
  std::thread thread_;
};

}  // namespace uper
