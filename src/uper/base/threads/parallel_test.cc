#include "uper/base/threads/parallel.h"

#include <gtest/gtest.h>

#include <chrono>
#include <latch>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "uper/base/error.h"

namespace uper {
namespace {

TEST(ConcurrentParallelForTest, EveryIndexOnce) {
  const StopFlag stop{false};
  for (const int jobs : {1, 2, 3, 8}) {
    for (const std::size_t count : {0, 1, 2, 1000}) {
      std::vector<std::atomic<int>> calls(count);
      ParallelFor(jobs, count, stop, [&](std::size_t i) { ++calls[i]; });
      for (const auto& call : calls) EXPECT_EQ(call, 1);
    }
  }
}

TEST(ConcurrentParallelForTest, ResultsAreVisibleToTheCaller) {
  const StopFlag stop{false};
  std::vector<std::size_t> squares(500);  // plain memory: the return must order it
  ParallelFor(4, squares.size(), stop, [&](std::size_t i) { squares[i] = i * i; });
  for (std::size_t i = 0; i < squares.size(); ++i) EXPECT_EQ(squares[i], i * i);
}

TEST(ConcurrentParallelForTest, JobsRunAtTheSameTime) {
  // Each task waits for the other two: with fewer threads than three this would not end.
  const StopFlag stop{false};
  std::latch together(3);
  ParallelFor(3, 3, stop, [&](std::size_t) { together.arrive_and_wait(); });
}

TEST(ConcurrentParallelForTest, OneJobRunsInOrderOnTheCallersThread) {
  const StopFlag stop{false};
  std::vector<std::size_t> order;
  const auto caller = std::this_thread::get_id();
  ParallelFor(1, 5, stop, [&](std::size_t i) {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    order.push_back(i);
  });
  EXPECT_EQ(order, (std::vector<std::size_t>{0, 1, 2, 3, 4}));
}

TEST(ConcurrentParallelForTest, LowestIndexThatThrewIsRethrown) {
  // Task 0 throws after task 1 has; a "first come" rule would rethrow the exception of task 1.
  const StopFlag stop{false};
  std::latch both(2);
  try {
    ParallelFor(2, 2, stop, [&](std::size_t i) {
      both.arrive_and_wait();
      if (i == 0) std::this_thread::sleep_for(std::chrono::milliseconds(30));
      throw std::out_of_range(std::to_string(i));
    });
    FAIL() << "nothing was thrown";
  } catch (const std::out_of_range& error) {
    EXPECT_STREQ(error.what(), "0");
  }
}

TEST(ConcurrentParallelForTest, NothingStartsAfterAFailure) {
  const StopFlag stop{false};
  int calls = 0;
  EXPECT_THROW(ParallelFor(1, 10, stop,
                           [&](std::size_t i) {
                             ++calls;
                             if (i == 3) throw std::runtime_error("three");
                           }),
               std::runtime_error);
  EXPECT_EQ(calls, 4);
}

ErrorKind KindOfError(const std::function<void()>& function) {
  try {
    function();
  } catch (const Error& error) {
    return error.kind();
  }
  ADD_FAILURE() << "no Error was thrown";
  return ErrorKind::kCorrupt;
}

TEST(ConcurrentParallelForTest, StopEndsTheLoop) {
  for (const int jobs : {1, 4}) {
    StopFlag stop{false};
    std::atomic<int> calls{0};
    const auto run = [&] {
      ParallelFor(jobs, 100000, stop, [&](std::size_t i) {
        ++calls;
        if (i == 3) stop = true;
      });
    };
    EXPECT_EQ(KindOfError(run), ErrorKind::kInterrupted);
    if (jobs == 1) {
      EXPECT_EQ(calls, 4);
    }
    EXPECT_LT(calls, 100000);
  }
}

TEST(ConcurrentParallelForTest, StopBeforeTheStartRunsNothing) {
  const StopFlag stop{true};
  int calls = 0;
  const auto run = [&] { ParallelFor(1, 5, stop, [&](std::size_t) { ++calls; }); };
  EXPECT_EQ(KindOfError(run), ErrorKind::kInterrupted);
  EXPECT_EQ(calls, 0);
}

TEST(ConcurrentParallelForTest, NoThreadsAreABrokenContract) {
  const StopFlag stop{false};
  EXPECT_EQ(KindOfError([&] { ParallelFor(0, 1, stop, [](std::size_t) {}); }),
            ErrorKind::kInternal);
}

TEST(AvailableCoresTest, IsPositiveAndNotMoreThanTheMachineHas) {
  EXPECT_GE(AvailableCores(), 1);
  EXPECT_LE(AvailableCores(), static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace
}  // namespace uper
