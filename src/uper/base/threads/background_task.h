#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace uper {

// A thread that runs one function at a time for its owner. The thread starts with the first
// function. Only the owner calls these methods. Owner and function must not use the same data until
// Wait() has returned or busy() was false.
class BackgroundTask {
 public:
  BackgroundTask() = default;
  // Waits for the running function and drops its exception.
  ~BackgroundTask();
  BackgroundTask(const BackgroundTask&) = delete;
  BackgroundTask& operator=(const BackgroundTask&) = delete;

  // REQUIRES: no function is running.
  void Start(std::function<void()> function);
  bool busy() const;
  // Waits until no function is running and rethrows its exception, once.
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
