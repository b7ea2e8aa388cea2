#include "uper/core/moments.h"

#include <gtest/gtest.h>

#include <vector>

#include "uper/base/random.h"

namespace uper {
namespace {

TEST(MomentsTest, HandValues) {
  // 1, 2, 6: mean 3, deviations -2, -1, 3, variance (4 + 1 + 9) / 3.
  const std::vector<double> values = {1, 2, 6};
  const Moments moments = ComputeMoments<double>(values);
  EXPECT_DOUBLE_EQ(moments.mean, 3);
  EXPECT_DOUBLE_EQ(moments.variance, 14.0 / 3);
}

TEST(MomentsTest, EqualValuesHaveNoVariance) {
  // 0.1 + 0.1 + 0.1 is not 3 * 0.1: a plain mean would leave a variance behind.
  const std::vector<double> values(3, 0.1);
  EXPECT_EQ(ComputeMoments<double>(values).variance, 0);
  EXPECT_EQ(ComputeMoments<double>(values).mean, 0.1);
}

TEST(MomentsTest, OffsetCostsNothing) {
  const std::vector<double> values = {1e8 + 1, 1e8 + 2, 1e8 + 6};
  EXPECT_DOUBLE_EQ(ComputeMoments<double>(values).mean, 1e8 + 3);
  EXPECT_DOUBLE_EQ(ComputeMoments<double>(values).variance, 14.0 / 3);
}

TEST(RunningMomentsTest, PiecesGiveTheWhole) {
  RandomStream random(1, "moments");
  std::vector<double> values(257);
  for (double& value : values) value = 50 + random.Normal();
  RunningMoments all;
  RunningMoments piece;
  for (std::size_t i = 0; i < values.size(); ++i) {
    piece.Add(values[i]);
    if (i % 31 == 30 || i + 1 == values.size()) {
      all.Merge(piece);
      piece = {};
    }
  }
  const Moments expected = ComputeMoments<double>(values);
  EXPECT_EQ(all.count, 257);
  EXPECT_NEAR(all.mean, expected.mean, 1e-13);
  EXPECT_NEAR(all.variance(), expected.variance, 1e-13);
}

TEST(RunningMomentsTest, FirstPieceIsTakenAsItIs) {
  RunningMoments moments;
  moments.Add(1e200);  // its square overflows, but no square of it is needed
  EXPECT_EQ(moments.mean, 1e200);
  EXPECT_EQ(moments.variance(), 0);
}

}  // namespace
}  // namespace uper
