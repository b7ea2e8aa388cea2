#include "uper/stats/comparison.h"

#include <gtest/gtest.h>

#include <array>

#include "uper/base/error.h"

namespace uper {
namespace {

TEST(ComparisonTest, ProbabilityOfImprovementCountsPairsAndHalvesTies) {
  // Task 0: pairs (1,1) tie, (1,0) win, (2,1) win, (2,0) win: 3.5 of 4. Task 1: 0 of 2.
  const TaskScores x = {{1, 2}, {0, 0}};
  const TaskScores y = {{1, 0}, {5}};
  EXPECT_DOUBLE_EQ(ProbabilityOfImprovement(x, y), (3.5 / 4 + 0) / 2);
  EXPECT_DOUBLE_EQ(ProbabilityOfImprovement(y, x), 1 - (3.5 / 4 + 0) / 2);
  EXPECT_DOUBLE_EQ(ProbabilityOfImprovement(x, x), 0.5);
  EXPECT_THROW(ProbabilityOfImprovement(x, {{1}}), Error);
}

TEST(ComparisonTest, ProfileIsTheShareStrictlyAbove) {
  const TaskScores scores = {{0, 1}, {2, 3}};
  EXPECT_EQ(PerformanceProfile(scores, std::array{-1.0, 0.0, 1.5, 3.0}),
            (std::vector<double>{1, 0.75, 0.5, 0}));
}

TEST(ComparisonTest, CumulativeImprovementByHand) {
  // sum x = 6, sum y = 4: 100 * 2 / 4.
  EXPECT_DOUBLE_EQ(CumulativeImprovement(std::array{1.0, 5.0}, std::array{1.0, 3.0}).value(), 50);
  EXPECT_DOUBLE_EQ(CumulativeImprovement(std::array{-1.0, 0.0}, std::array{1.0, 3.0}).value(),
                   -125);
}

TEST(ComparisonTest, CumulativeImprovementIsUndefinedWithoutAPositiveBaseline) {
  EXPECT_FALSE(CumulativeImprovement(std::array{1.0, 5.0}, std::array{-1.0, 1.0}).has_value());
  EXPECT_FALSE(CumulativeImprovement(std::array{1.0, 5.0}, std::array{-1.0, -3.0}).has_value());
  EXPECT_THROW(CumulativeImprovement(std::array{1.0}, std::array{1.0, 1.0}), Error);
}

}  // namespace
}  // namespace uper
