#include "uper/base/threads/task_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <latch>
#include <thread>
#include <vector>

#include "uper/base/error.h"

namespace uper {
namespace {

TEST(ConcurrentTaskQueueTest, EveryTaskOnceAndSeesWhatWasBefore) {
  constexpr int kTasks = 20'000;
  for (const int workers : {0, 1, 3}) {
    for (const int idle_spins : {0, 1000}) {
      std::vector<int> inputs(kTasks);  // plain memory: adding must order it
      std::vector<std::atomic<int>> results(kTasks);
      std::atomic<int> done = 0;
      {
        TaskQueue queue({.workers = workers, .capacity = 5, .idle_spins = idle_spins},
                        [&](int task) {
                          results[task] += inputs[task];
                          ++done;
                        });
        EXPECT_EQ(queue.workers(), workers);
        for (int task = 0; task < kTasks; ++task) {
          inputs[task] = task + 1;
          while (task - done >= 5) queue.RunOne();
          queue.Add(task);
        }
        while (done < kTasks) queue.RunOne();
        EXPECT_FALSE(queue.RunOne());
      }
      for (int task = 0; task < kTasks; ++task) ASSERT_EQ(results[task], task + 1);
    }
  }
}

TEST(ConcurrentTaskQueueTest, WorkersWakeUpAfterSleeping) {
  for (int round = 0; round < 5; ++round) {
    std::latch together(3);
    TaskQueue queue({.workers = 2, .capacity = 2, .idle_spins = 0},
                    [&](int) { together.arrive_and_wait(); });
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    queue.Add(0);
    queue.Add(1);
    together.arrive_and_wait();  // with a worker asleep this would not end
  }
}

TEST(ConcurrentTaskQueueTest, TheEndWaitsForATaskUnderWay) {
  std::latch begun(1);
  bool ended = false;
  {
    TaskQueue queue({.workers = 1, .capacity = 1}, [&](int) {
      begun.count_down();
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      ended = true;
    });
    queue.Add(0);
    begun.wait();
  }
  EXPECT_TRUE(ended);
}

TEST(TaskQueueTest, RunsInOrderAndNeverMoreThanFit) {
  std::vector<int> seen;
  TaskQueue queue({.workers = 0, .capacity = 3}, [&](int task) { seen.push_back(task); });
  for (const int task : {7, 5, 6}) queue.Add(task);
  EXPECT_THROW(queue.Add(8), Error);
  EXPECT_TRUE(queue.RunOne());
  queue.Add(8);
  while (queue.RunOne()) {
  }
  EXPECT_EQ(seen, (std::vector<int>{7, 5, 6, 8}));
}

}  // namespace
}  // namespace uper
