#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <mutex>
#include <new>

#include "uper/base/error.h"

namespace uper::python {

// Counts the forks that led to this process.
int ForkGeneration();

// One lock per object. It is held with or without the interpreter lock, and never waited for with
// it: a thread that waits lets others run Python meanwhile. After a fork the child's copy is free,
// unless another thread was working on the object at that moment: then its content is incomplete.
class ObjectLock {
 public:
  class Guard {
   public:
    explicit Guard(ObjectLock& lock) : lock_(lock) { lock.Take(); }
    ~Guard() { lock_.Release(); }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

   private:
    ObjectLock& lock_;
  };

 private:
  void Take() {
    if (generation_ != ForkGeneration()) AfterFork();
    if (!mutex_.try_lock()) {
      const nanobind::gil_scoped_release release;
      mutex_.lock();
    }
    busy_ = true;
  }
  void Release() {
    busy_ = false;
    mutex_.unlock();
  }
  void AfterFork() {
    if (busy_) {
      throw Error(ErrorKind::kUsage,
                  "the process was forked while another thread used this replay memory: its "
                  "content here is incomplete; fork before threads use it, or start processes by "
                  "'spawn'");
    }
    new (&mutex_) std::mutex;  // the old one may be locked by a thread that does not exist here
    generation_ = ForkGeneration();
  }

  std::mutex mutex_;
  std::atomic<bool> busy_ = false;
  int generation_ = ForkGeneration();
};

// Work above this many bytes lets other threads run Python meanwhile; below, giving up the
// interpreter lock costs more than it helps.
inline constexpr std::size_t kBytesWorthReleasing = std::size_t{1} << 18;

}  // namespace uper::python
