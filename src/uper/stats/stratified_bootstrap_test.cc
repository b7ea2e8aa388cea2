#include "uper/stats/stratified_bootstrap.h"

#include <gtest/gtest.h>

#include <cmath>

#include "uper/stats/aggregate.h"
#include "uper/stats/comparison.h"

namespace uper {
namespace {

TEST(StratifiedBootstrapTest, ResamplesRunsInsideTheirTask) {
  const TaskScores scores = {{1, 2, 3}, {10, 20}};
  EXPECT_EQ(Resampled(scores, {{2, 2, 0}, {1, 1}}), (TaskScores{{3, 3, 1}, {20, 20}}));
  for (const RunIndices& indices : DrawResamples(scores, 100)) {
    ASSERT_EQ(indices.size(), 2u);
    EXPECT_EQ(indices[0].size(), 3u);
    EXPECT_EQ(indices[1].size(), 2u);
    for (const auto index : indices[1]) EXPECT_LT(index, 2u);
  }
}

TEST(StratifiedBootstrapTest, TasksAreResampledIndependently) {
  // Two tasks of two runs: both resampled alike in 1 of 4 cases if independent.
  // Standard error of the count: sqrt(4000 * 1/4 * 3/4) = 27.
  const TaskScores scores = {{0, 1}, {0, 1}};
  int alike = 0;
  for (const RunIndices& indices : DrawResamples(scores, 4000)) alike += indices[0] == indices[1];
  EXPECT_NEAR(alike, 1000, 4 * 27);
}

TEST(StratifiedBootstrapTest, IntervalIsThePercentileOfTheGivenResamples) {
  const TaskScores scores = {{0, 1}};
  // Means 0, 1/2, 1: quantiles interpolate between them at positions 0.05 and 1.95.
  const std::vector<RunIndices> resamples = {{{0, 0}}, {{0, 1}}, {{1, 1}}};
  const Interval interval = StratifiedInterval(scores, resamples, MeanOfTaskMeans);
  EXPECT_DOUBLE_EQ(interval.value, 0.5);
  EXPECT_DOUBLE_EQ(interval.low, 0.025);
  EXPECT_DOUBLE_EQ(interval.high, 0.975);
}

TEST(StratifiedBootstrapTest, EachSideHasItsOwnResamples) {
  const TaskScores x = {{0, 2}};
  const TaskScores y = {{1, 1}};
  const std::vector<RunIndices> high(3, RunIndices{{1, 1}});
  const std::vector<RunIndices> plain(3, RunIndices{{0, 1}});
  const Interval interval = StratifiedInterval(x, y, high, plain, ProbabilityOfImprovement);
  EXPECT_EQ(interval.value, 0.5);
  EXPECT_EQ(interval.low, 1);
  EXPECT_EQ(interval.high, 1);
}

TEST(StratifiedBootstrapTest, OneRunPerTaskShowsNoSpread) {
  const TaskScores scores = {{1}, {2}};
  const Interval interval =
      StratifiedInterval(scores, DrawResamples(scores, 10), MedianOfTaskMeans);
  EXPECT_EQ(interval.value, 1.5);
  EXPECT_TRUE(std::isinf(interval.low) && std::isinf(interval.high));
}

TEST(StratifiedBootstrapTest, IsRepeatableAndTheSeedCounts) {
  const TaskScores scores = {{1, 2, 3}, {4, 5, 6}};
  EXPECT_EQ(DrawResamples(scores, 20), DrawResamples(scores, 20));
  EXPECT_NE(DrawResamples(scores, 20), DrawResamples(scores, 20, 1));
}

}  // namespace
}  // namespace uper
