#include "uper/core/schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "uper/base/random.h"

namespace uper {
namespace {

TEST(LinearScheduleTest, AtAndAroundItsEnds) {
  const LinearSchedule epsilon = {.from = 1, .to = 0.01, .start = 200, .end = 4200};
  EXPECT_EQ(epsilon.At(-1), 1);
  EXPECT_EQ(epsilon.At(0), 1);
  EXPECT_EQ(epsilon.At(200), 1);
  EXPECT_LT(epsilon.At(201), 1);
  EXPECT_DOUBLE_EQ(epsilon.At(1200), 0.7525);  // a quarter of the way: 1 - 0.99 / 4
  EXPECT_DOUBLE_EQ(epsilon.At(2200), 0.505);   // half
  EXPECT_GT(epsilon.At(4199), 0.01);
  EXPECT_EQ(epsilon.At(4200), 0.01);
  EXPECT_EQ(epsilon.At(1e18), 0.01);
}

TEST(LinearScheduleTest, RisesToo) {
  const LinearSchedule beta = {.from = 0.4, .to = 1, .start = 50000, .end = 50e6};
  EXPECT_EQ(beta.At(50000), 0.4);
  EXPECT_DOUBLE_EQ(beta.At(25025000), 0.7);  // half way between 50,000 and 50,000,000
  EXPECT_EQ(beta.At(50e6), 1);
}

TEST(LinearScheduleTest, EqualEndsAreAStep) {
  const LinearSchedule step = {.from = 1, .to = 2, .start = 10, .end = 10};
  EXPECT_EQ(step.At(std::nextafter(10.0, 0.0)), 1);
  EXPECT_EQ(step.At(10), 2);
  EXPECT_EQ(step.At(11), 2);
}

TEST(LinearScheduleTest, NeverLeavesItsRange) {
  RandomStream random(1, "schedule");
  for (int i = 0; i < 20000; ++i) {
    const double from = random.Uniform();
    const double to = random.Uniform();
    const LinearSchedule schedule = {.from = from, .to = to, .start = 0, .end = 1};
    const double value = schedule.At(1 - random.Uniform() * 0x1p-50);
    EXPECT_GE(value, std::min(from, to));
    EXPECT_LE(value, std::max(from, to));
  }
  // t - start and end - start both round to 1, and 0.03 + (0.29 - 0.03) is 0.29000000000000004.
  const LinearSchedule schedule = {.from = 0.03, .to = 0.29, .start = -1, .end = 0x1p-60};
  EXPECT_LE(schedule.At(0), 0.29);
}

TEST(HalvingScheduleTest, HalvesEveryHalfLife) {
  const HalvingSchedule rate = {.initial = 0.005, .half_life = 40000};
  EXPECT_EQ(rate.At(0), 0.005);
  EXPECT_DOUBLE_EQ(rate.At(20000), 0.0035355339059327377);  // 0.005 / sqrt(2)
  EXPECT_DOUBLE_EQ(rate.At(40000), 0.0025);
  EXPECT_DOUBLE_EQ(rate.At(200000), 0.00015625);  // 0.005 / 2^5
}

}  // namespace
}  // namespace uper
