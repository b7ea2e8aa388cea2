#include "uper/base/threads/background_task.h"

#include <utility>

#include "uper/base/check.h"

namespace uper {

BackgroundTask::~BackgroundTask() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void BackgroundTask::Start(std::function<void()> function) {
  {
    const std::lock_guard lock(mutex_);
    UPER_CHECK(!busy_, "one function at a time");
    function_ = std::move(function);
    busy_ = true;
  }
  if (thread_.joinable()) {
    changed_.notify_all();
  } else {
    thread_ = std::thread([this] { Loop(); });
  }
}

bool BackgroundTask::busy() const {
  const std::lock_guard lock(mutex_);
  return busy_;
}

void BackgroundTask::Wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !busy_; });
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void BackgroundTask::Loop() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stop_ || function_; });
    if (!function_) return;
    const std::function<void()> function = std::exchange(function_, nullptr);
    lock.unlock();
    std::exception_ptr failure;
    try {
      function();
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    failure_ = failure;
    busy_ = false;
    changed_.notify_all();
  }
}

}  // namespace uper
