#include "uper/stats/aggregate.h"

#include <gtest/gtest.h>

#include "uper/base/error.h"

namespace uper {
namespace {

// Three tasks; means 2, 10, 0.5.
const TaskScores kScores = {{1, 3}, {8, 12}, {0, 1}};

TEST(AggregateTest, ByHand) {
  EXPECT_DOUBLE_EQ(MedianOfTaskMeans(kScores), 2);
  EXPECT_DOUBLE_EQ(MeanOfTaskMeans(kScores), 12.5 / 3);
  // Sorted 0 1 1 3 8 12; floor(6 / 4) = 1 dropped at each end: (1 + 1 + 3 + 8) / 4.
  EXPECT_DOUBLE_EQ(InterquartileMean(kScores), 3.25);
  // min(score, 1): 1 1 1 1 0 1.
  EXPECT_DOUBLE_EQ(OptimalityGap(kScores), 1 - 5.0 / 6);
  EXPECT_DOUBLE_EQ(OptimalityGap(kScores, 3), 3 - (1 + 3 + 3 + 3 + 0 + 1) / 6.0);
}

TEST(AggregateTest, TheOrderOfMediansAndMeansMatters) {
  // Seed 0: median(1, 8, 0) = 1; seed 1: median(3, 12, 1) = 3.
  EXPECT_EQ(MediansOverTasks(kScores), (std::vector<double>{1, 3}));
  const TaskScores crossed = {{0, 9}, {9, 0}, {5, 5}};
  EXPECT_DOUBLE_EQ(Mean(MediansOverTasks(crossed)), 5);
  EXPECT_DOUBLE_EQ(MedianOfTaskMeans(crossed), 4.5);
}

TEST(AggregateTest, TasksMayHaveDifferentNumbersOfRuns) {
  const TaskScores ragged = {{1, 2, 3}, {10}};
  EXPECT_DOUBLE_EQ(MeanOfTaskMeans(ragged), 6);
  EXPECT_DOUBLE_EQ(InterquartileMean(ragged), 2.5);
  EXPECT_THROW(MediansOverTasks(ragged), Error);
}

TEST(AggregateTest, SpreadIsThePopulations) {
  EXPECT_DOUBLE_EQ(StandardDeviation({1, 3}), 1);
  EXPECT_EQ(StandardDeviation({4}), 0);
}

TEST(AggregateTest, NothingIsAnError) {
  EXPECT_THROW(MedianOfTaskMeans({}), Error);
  EXPECT_THROW(MeanOfTaskMeans({{1}, {}}), Error);
  EXPECT_THROW(MediansOverTasks({}), Error);
}

}  // namespace
}  // namespace uper
