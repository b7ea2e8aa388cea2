#include "uper/cli/bench/bench_timing.h"

#include <gtest/gtest.h>

#include <set>
#include <thread>

#include "uper/base/error_for_tests.h"

namespace uper::cli {
namespace {

TEST(BenchTimingTest, SummaryIsMedianAndRange) {
  const Timing timing = Summary({5, 1, 9, 2, 3});
  EXPECT_EQ(timing.median, 3);
  EXPECT_EQ(timing.low, 1);
  EXPECT_EQ(timing.high, 9);
  EXPECT_EQ(Summary({4}).median, 4);
}

TEST(BenchTimingTest, ScaledChangesTheUnitOfAll) {
  const Timing timing = Scaled({.median = 2, .low = 1, .high = 4}, 1000);
  EXPECT_EQ(timing.median, 2000);
  EXPECT_EQ(timing.low, 1000);
  EXPECT_EQ(timing.high, 4000);
}

TEST(BenchTimingTest, MeasuresSecondsOfOneCall) {
  const StopFlag stop = false;
  std::set<std::uint64_t> numbers;
  std::uint64_t calls = 0;
  const Timing timing = MeasureSeconds({.repeats = 3, .least_seconds = 0.02, .calls_per_look = 2},
                                       stop, [&](std::uint64_t number) {
                                         ++calls;
                                         numbers.insert(number);
                                         std::this_thread::sleep_for(std::chrono::milliseconds(2));
                                       });
  EXPECT_GE(timing.low, 0.002);
  EXPECT_GE(calls, 3 * 2);
  EXPECT_EQ(numbers.size(), calls) << "each call has a number of its own";
}

TEST(BenchTimingTest, StopEndsAMeasurement) {
  StopFlag stop = false;
  const Thrown thrown = Catch([&] {
    MeasureSeconds({.least_seconds = 1e9}, stop, [&](std::uint64_t number) { stop = number == 5; });
  });
  EXPECT_EQ(thrown.kind, ErrorKind::kInterrupted);
}

}  // namespace
}  // namespace uper::cli
