#include "uper/cli/bench/alternating_baseline.h"

#include <gtest/gtest.h>

namespace uper::cli {
namespace {

// A clock that moves only while the emulator runs, and the speeds that the emulator will report.
struct FakeEmulator {
  std::vector<double> speeds;
  double now = 100;
  std::size_t calls = 0;

  AlternatingBaseline Baseline() {
    return AlternatingBaseline(
        [this] {
          now += 0.25;
          return speeds[calls++];
        },
        [this] { return now; });
  }
};

TEST(AlternatingBaselineTest, ComparesATurnWithTheEmulatorBesideIt) {
  FakeEmulator emulator{.speeds = {1000, 3000, 500}};
  AlternatingBaseline baseline = emulator.Baseline();
  baseline.Begin(100);
  emulator.now += 0.5;
  baseline.Next(600);  // 1,000 frames per second against 2,000
  emulator.now += 1;
  baseline.Next(1300);  // 700 against 1,750
  EXPECT_EQ(baseline.emulator_speeds(), emulator.speeds);
  ASSERT_EQ(baseline.shares().size(), 2U);
  EXPECT_DOUBLE_EQ(baseline.shares()[0], 0.5);
  EXPECT_DOUBLE_EQ(baseline.shares()[1], 0.4);
  EXPECT_DOUBLE_EQ(baseline.waited_seconds(), 0.5) << "the first time was before the training";
}

TEST(AlternatingBaselineTest, WhatIsTooShortDoesNotCount) {
  FakeEmulator emulator{.speeds = {1000, 1000}};
  AlternatingBaseline baseline = emulator.Baseline();
  baseline.Begin(0);
  emulator.now += 0.03125;
  baseline.Next(50);
  EXPECT_EQ(emulator.calls, 1U);
  EXPECT_TRUE(baseline.shares().empty());
  emulator.now += 0.09375;
  baseline.Next(100);
  ASSERT_EQ(baseline.shares().size(), 1U);
  EXPECT_DOUBLE_EQ(baseline.shares()[0], 0.8) << "of the whole turn, 0.125 seconds";
}

}  // namespace
}  // namespace uper::cli
