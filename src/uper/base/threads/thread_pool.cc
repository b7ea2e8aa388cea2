#include "uper/base/threads/thread_pool.h"

#include <algorithm>
#include <utility>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "uper/base/check.h"
#include "uper/base/threads/spin_wait.h"
#include "uper/base/threads/start_threads.h"

namespace uper {
namespace {

constexpr int kMaxTasks = 1 << 16;

#if defined(__x86_64__)
constexpr unsigned kFlushBits = 0x8040;  // FTZ, DAZ
std::uint64_t FloatMode() { return _mm_getcsr(); }
void SetFloatMode(std::uint64_t mode) { _mm_setcsr(static_cast<unsigned>(mode)); }
#elif defined(__aarch64__)
constexpr std::uint64_t kFlushBits = std::uint64_t{1} << 24;  // FZ
std::uint64_t FloatMode() {
  std::uint64_t mode;
  asm volatile("mrs %0, fpcr" : "=r"(mode));
  return mode;
}
void SetFloatMode(std::uint64_t mode) { asm volatile("msr fpcr, %0" : : "r"(mode)); }
#else
constexpr std::uint64_t kFlushBits = 0;
std::uint64_t FloatMode() { return 0; }
void SetFloatMode(std::uint64_t) {}
#endif

// A ticket: job in the upper 32 bits, then 16 bits each for the next task and the end of the share.
constexpr std::uint64_t kOneTask = 1 << 16;
std::uint64_t MakeTicket(std::uint32_t job, int next, int end) {
  return (std::uint64_t{job} << 32) | (static_cast<std::uint64_t>(next) << 16) |
         static_cast<std::uint64_t>(end);
}
std::uint32_t JobOf(std::uint64_t ticket) { return static_cast<std::uint32_t>(ticket >> 32); }
int NextOf(std::uint64_t ticket) { return static_cast<int>(ticket >> 16 & 0xFFFF); }
int EndOf(std::uint64_t ticket) { return static_cast<int>(ticket & 0xFFFF); }

// Resets a flag at the end of a scope, also when an exception leaves it.
struct Unflag {
  std::atomic<bool>& flag;
  ~Unflag() { flag.store(false, std::memory_order_release); }
};

}  // namespace

ScopedFlushDenormals::ScopedFlushDenormals() : saved_(FloatMode()) {
  SetFloatMode(saved_ | kFlushBits);
}

ScopedFlushDenormals::~ScopedFlushDenormals() { SetFloatMode(saved_); }

ThreadPool::ThreadPool(const ThreadPoolOptions& options)
    : shares_(std::max(options.threads, 1)), idle_spins_(options.idle_spins) {
  UPER_CHECK(options.threads >= 1, "at least one thread is needed");
  workers_ =
      StartThreads(options.threads - 1, [this](int i) { WorkerLoop(i + 1); }, [this] { Stop(); });
}

ThreadPool::~ThreadPool() { Stop(); }

void ThreadPool::Stop() {
  stop_ = true;
  ++signal_;
  signal_.notify_all();
}

void ThreadPool::Run(int count, Call call, const void* function) {
  UPER_CHECK(count >= 0 && count < kMaxTasks, "too many tasks");
  UPER_CHECK(!busy_.exchange(true, std::memory_order_acquire),
             "a thread pool runs one call at a time, and none from inside a task");
  const Unflag unflag{busy_};
  const ScopedFlushDenormals flush;
  if (count <= 1 || workers_.empty()) return RunInline(count, call, function);
  Publish(count, call, function);
  Work(JobOf(shares_[0].ticket.load(std::memory_order_relaxed)), /*thread=*/0);
  AwaitCompletion(count);
  if (failed_.exchange(false, std::memory_order_relaxed)) {
    const std::lock_guard lock(failure_mutex_);
    std::rethrow_exception(std::exchange(failure_, nullptr));
  }
}

void ThreadPool::RunInline(int count, Call call, const void* function) {
  for (int index = 0; index < count; ++index) call(function, index, /*thread=*/0);
}

void ThreadPool::Publish(int count, Call call, const void* function) {
  done_.store(0, std::memory_order_relaxed);
  count_.store(count, std::memory_order_relaxed);
  call_.store(call, std::memory_order_relaxed);
  function_.store(function, std::memory_order_relaxed);
  const std::uint32_t job = JobOf(shares_[0].ticket.load(std::memory_order_relaxed)) + 1;
  for (int share = 0; share < threads(); ++share) {
    const int begin = static_cast<int>(std::int64_t{count} * share / threads());
    const int end = static_cast<int>(std::int64_t{count} * (share + 1) / threads());
    shares_[share].ticket.store(MakeTicket(job, begin, end), std::memory_order_release);
  }
  signal_.fetch_add(1, std::memory_order_seq_cst);
  if (sleepers_.load(std::memory_order_seq_cst) > 0) signal_.notify_all();
}

void ThreadPool::AwaitCompletion(int count) {
  for (int spin = 0; spin < idle_spins_; ++spin) {
    if (done_.load(std::memory_order_acquire) == count) return;
    SpinOrYield(spin);
  }
  caller_waits_.store(true, std::memory_order_seq_cst);
  for (int done = done_.load(); done != count; done = done_.load()) done_.wait(done);
  caller_waits_.store(false, std::memory_order_relaxed);
}

void ThreadPool::Work(std::uint32_t job, int thread) {
  int finished = 0;
  for (int i = 0; i < threads(); ++i) {
    finished += WorkOnShare(job, (thread + i) % threads(), thread);
  }
  if (finished == 0) return;  // the job may be over
  // Finished tasks are reported together, once none is left to start, because every report takes
  // the counter's cache line from another core. This is the thread's last access for the job; its
  // release publishes the results.
  const int count = count_.load(std::memory_order_relaxed);
  const int done = done_.fetch_add(finished, std::memory_order_seq_cst) + finished;
  if (done == count && caller_waits_.load(std::memory_order_seq_cst)) done_.notify_one();
}

int ThreadPool::WorkOnShare(std::uint32_t job, int share, int thread) {
  std::atomic<std::uint64_t>& shared_ticket = shares_[share].ticket;
  std::uint64_t ticket = shared_ticket.load(std::memory_order_acquire);
  int finished = 0;
  while (JobOf(ticket) == job && NextOf(ticket) < EndOf(ticket)) {
    if (!shared_ticket.compare_exchange_weak(ticket, ticket + kOneTask, std::memory_order_acq_rel,
                                             std::memory_order_acquire)) {
      continue;
    }
    // The claimed task is not reported, so the job is still the one that the ticket announced.
    RunOne(NextOf(ticket), thread, call_.load(std::memory_order_relaxed),
           function_.load(std::memory_order_relaxed));
    ++finished;
    ticket = shared_ticket.load(std::memory_order_acquire);
  }
  return finished;
}

void ThreadPool::RunOne(int index, int thread, Call call, const void* function) {
  if (failed_.load(std::memory_order_relaxed)) return;
  try {
    call(function, index, thread);
  } catch (...) {
    RecordFailure(index);
  }
}

void ThreadPool::RecordFailure(int index) {
  const std::lock_guard lock(failure_mutex_);
  if (!failure_ || index < failed_index_) {
    failed_index_ = index;
    failure_ = std::current_exception();
  }
  failed_.store(true, std::memory_order_relaxed);
}

void ThreadPool::WorkerLoop(int thread) {
  const ScopedFlushDenormals flush;
  std::uint32_t job = 0;
  while (true) {
    job = AwaitJob(job, thread);
    if (stop_.load(std::memory_order_relaxed)) return;
    Work(job, thread);
  }
}

// Waits for a job other than `seen_job` (or the end): spins, then sleeps.
std::uint32_t ThreadPool::AwaitJob(std::uint32_t seen_job, int thread) {
  while (true) {
    const std::uint32_t signal = signal_.load(std::memory_order_seq_cst);
    for (int spin = 0; spin < idle_spins_; ++spin) {
      const std::uint32_t job = JobOf(shares_[thread].ticket.load(std::memory_order_acquire));
      if (job != seen_job || stop_.load(std::memory_order_relaxed)) return job;
      SpinOrYield(spin);
    }
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    signal_.wait(signal, std::memory_order_seq_cst);
    sleepers_.fetch_sub(1, std::memory_order_relaxed);
  }
}

}  // namespace uper
