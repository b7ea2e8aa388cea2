#include "uper/stats/bootstrap.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "uper/base/error.h"
#include "uper/base/random.h"

namespace uper {
namespace {

TEST(BootstrapTest, QuantilesInterpolate) {
  const std::vector<double> sorted = {1, 2, 4, 8};
  EXPECT_DOUBLE_EQ(SortedQuantile(sorted, 0), 1);
  EXPECT_DOUBLE_EQ(SortedQuantile(sorted, 1), 8);
  EXPECT_DOUBLE_EQ(SortedQuantile(sorted, 0.5), 3);      // between 2 and 4
  EXPECT_DOUBLE_EQ(SortedQuantile(sorted, 0.25), 1.75);  // position 0.75
}

TEST(BootstrapTest, EqualSeedsHaveNoSpread) {
  const Interval interval = BootstrapMean(std::vector<double>{3, 3, 3});
  EXPECT_EQ(interval.value, 3);
  EXPECT_EQ(interval.low, 3);
  EXPECT_EQ(interval.high, 3);
}

TEST(BootstrapTest, OneSeedShowsNoSpreadAtAll) {
  const Interval interval = BootstrapMean(std::vector<double>{5});
  EXPECT_EQ(interval.value, 5);
  EXPECT_TRUE(std::isinf(interval.low) && interval.low < 0);
  EXPECT_TRUE(std::isinf(interval.high) && interval.high > 0);
}

TEST(BootstrapTest, EmptyIsAnError) { EXPECT_THROW(BootstrapMean(std::vector<double>{}), Error); }

TEST(BootstrapTest, IsRepeatableAndMovesWithTheData) {
  const std::vector<double> values = {1, 2, 3, 4, 5, 6};
  const Interval first = BootstrapMean(values);
  const Interval second = BootstrapMean(values);
  EXPECT_EQ(first.low, second.low);
  EXPECT_EQ(first.high, second.high);
  std::vector<double> moved = values;
  for (double& value : moved) value += 10;
  EXPECT_NEAR(BootstrapMean(moved).low, first.low + 10, 1e-12);
  EXPECT_LT(first.low, first.value);
  EXPECT_GT(first.high, first.value);
}

TEST(BootstrapTest, TwoSeedsGiveTheExactDistribution) {
  // Means of resamples of {0, 1}: 0, 1/2, 1 with probability 1/4, 1/2, 1/4.
  const Interval interval = BootstrapMean(std::vector<double>{0, 1});
  EXPECT_EQ(interval.low, 0);
  EXPECT_EQ(interval.high, 1);
}

TEST(BootstrapTest, CoversTheTruthAboutAsOftenAsItSays) {
  // 400 experiments of 40 normal seeds: the percentile interval covers 0 in about 94 % of them
  // (a little below 95 % at n = 40); the count's standard error is sqrt(400 * .94 * .06) = 4.7.
  RandomStream stream(1, "bootstrap test");
  int covered = 0;
  for (int experiment = 0; experiment < 400; ++experiment) {
    std::vector<double> seeds(40);
    for (double& seed : seeds) seed = stream.Normal();
    const Interval interval = BootstrapMean(seeds, 1000);
    covered += interval.low <= 0 && interval.high >= 0 ? 1 : 0;
  }
  EXPECT_NEAR(covered, 376, 4 * 4.7);
}

}  // namespace
}  // namespace uper
