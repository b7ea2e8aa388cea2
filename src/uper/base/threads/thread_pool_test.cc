#include "uper/base/threads/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <latch>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "uper/base/error.h"

namespace uper {
namespace {

TEST(ConcurrentThreadPoolTest, EveryTaskOnce) {
  for (const int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (const int count : {0, 1, 2, 7, 1000}) {
      std::vector<std::atomic<int>> calls(count);
      pool.ParallelTasks(count, [&](int task) { ++calls[task]; });
      for (const auto& call : calls) EXPECT_EQ(call, 1);
    }
  }
}

TEST(ConcurrentThreadPoolTest, ManyShortJobsNeverMixTheirTasks) {
  // Each job has its own closure and size; a late worker that ran a task with another job's data
  // would write into the wrong slot or the wrong value.
  ThreadPool pool(4);
  std::vector<int> slots(9);  // plain memory: the return must order it
  for (int job = 0; job < 20000; ++job) {
    const int count = 2 + job % 8;
    pool.ParallelTasks(count, [&slots, job](int task) { slots[task] = job * 16 + task; });
    for (int task = 0; task < count; ++task) ASSERT_EQ(slots[task], job * 16 + task);
  }
}

TEST(ConcurrentThreadPoolTest, WorkersWakeUpAfterSleeping) {
  ThreadPool pool(3);
  for (int job = 0; job < 5; ++job) {
    std::this_thread::sleep_for(std::chrono::milliseconds(3));  // far longer than workers spin
    // Each task waits for the other two: with a worker asleep this would not end.
    std::latch together(3);
    pool.ParallelTasks(3, [&](int) { together.arrive_and_wait(); });
  }
}

TEST(ConcurrentThreadPoolTest, TheCallerSleepsUntilASlowTaskIsDone) {
  ThreadPool pool(2);
  std::latch both_started(2);
  int slow = 0;
  pool.ParallelTasks(2, [&](int, int thread) {
    both_started.arrive_and_wait();
    if (thread == 0) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    slow = 1;
  });
  EXPECT_EQ(slow, 1);
}

TEST(ConcurrentThreadPoolTest, ThreadNumbersTellTasksApart) {
  ThreadPool pool(4);
  std::vector<std::atomic<int>> inside(pool.threads());
  pool.ParallelTasks(4000, [&](int, int thread) {
    EXPECT_EQ(++inside.at(thread), 1);
    --inside.at(thread);
  });
}

TEST(ConcurrentThreadPoolTest, LowestIndexThatThrewIsRethrownAndThePoolLivesOn) {
  ThreadPool pool(2);
  for (int repeat = 0; repeat < 20; ++repeat) {
    std::latch both(2);
    try {
      pool.ParallelTasks(2, [&](int task) {
        both.arrive_and_wait();
        if (task == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        throw std::out_of_range(std::to_string(task));
      });
      FAIL() << "nothing was thrown";
    } catch (const std::out_of_range& error) {
      EXPECT_STREQ(error.what(), "0");
    }
    std::atomic<int> calls = 0;
    pool.ParallelTasks(5, [&](int) { ++calls; });
    EXPECT_EQ(calls, 5);
  }
}

TEST(ConcurrentThreadPoolTest, CallsFromInsideATaskAreABrokenContract) {
  ThreadPool pool(2);
  EXPECT_THROW(pool.ParallelTasks(2, [&](int) { pool.ParallelTasks(2, [](int) {}); }), Error);
  EXPECT_THROW(pool.ParallelTasks(1, [&](int) { pool.ParallelTasks(1, [](int) {}); }), Error);
}

TEST(ThreadPoolTest, OneThreadRunsInOrder) {
  ThreadPool pool(1);
  std::vector<int> order;
  pool.ParallelTasks(4, [&](int task) { order.push_back(task); });
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3}));
}

TEST(ThreadPoolTest, NoThreadsAreABrokenContract) { EXPECT_THROW(ThreadPool(0), Error); }

// Half of the smallest normal number; volatile so that it is computed at run time.
float HalfOfSmallest() {
  volatile float smallest = std::numeric_limits<float>::min();
  return smallest * 0.5F;
}

TEST(ConcurrentThreadPoolTest, DenormalsAreZeroInEveryTaskAndNotOutside) {
  ThreadPool pool(3);
  std::latch together(3);
  std::vector<float> values(3, 1.0F);
  pool.ParallelTasks(3, [&](int task) {
    together.arrive_and_wait();  // so that every thread has one task
    values[task] = HalfOfSmallest();
  });
  EXPECT_EQ(values, std::vector<float>(3, 0.0F));
  pool.ParallelTasks(1, [&](int) { values[0] = HalfOfSmallest(); });
  EXPECT_EQ(values[0], 0.0F);
  EXPECT_GT(HalfOfSmallest(), 0.0F);
}

TEST(ScopedFlushDenormalsTest, HoldsForItsScope) {
  EXPECT_GT(HalfOfSmallest(), 0.0F);
  {
    const ScopedFlushDenormals flush;
    EXPECT_EQ(HalfOfSmallest(), 0.0F);
  }
  EXPECT_GT(HalfOfSmallest(), 0.0F);
}

}  // namespace
}  // namespace uper
