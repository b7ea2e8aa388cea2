#include "uper/tabular/quantile_ensemble.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "uper/base/error.h"

namespace uper {
namespace {

TEST(QuantileEnsembleTest, IdenticalStartIsAnEvenGridWithoutDisagreement) {
  QuantileEnsemble ensemble({.members = 3, .quantiles = 4});
  ensemble.StartIdentical(-1, 1);
  // Midpoints 1/8, 3/8, 5/8, 7/8 of [-1, 1].
  for (std::size_t k = 0; k < 3; ++k) {
    EXPECT_DOUBLE_EQ(ensemble.member(k)[0], -0.75);
    EXPECT_DOUBLE_EQ(ensemble.member(k)[3], 0.75);
  }
  const Uncertainty uncertainty = ensemble.Decompose(2);
  EXPECT_EQ(uncertainty.epistemic, 0);
  EXPECT_DOUBLE_EQ(uncertainty.target_distance_sq, 4);
  EXPECT_DOUBLE_EQ(uncertainty.aleatoric, (0.75 * 0.75 + 0.25 * 0.25) / 2);
}

TEST(QuantileEnsembleTest, RandomStartIsSortedInRangeAndDiffersBetweenMembers) {
  QuantileEnsemble ensemble({.members = 5, .quantiles = 30});
  RandomStream stream(1, "start");
  ensemble.StartRandom(-1, 1, stream);
  for (std::size_t k = 0; k < 5; ++k) {
    const auto row = ensemble.member(k);
    EXPECT_TRUE(std::is_sorted(row.begin(), row.end()));
    EXPECT_GE(row.front(), -1);
    EXPECT_LT(row.back(), 1);
  }
  EXPECT_NE(ensemble.member(0)[0], ensemble.member(1)[0]);
  EXPECT_GT(ensemble.Decompose(0).epistemic, 0);
}

TEST(QuantileEnsembleTest, UpdateMovesOnlyTheMaskedMembers) {
  QuantileEnsemble ensemble({.members = 3, .quantiles = 2});
  ensemble.Update(1, 0.1, 0b101);
  // theta = 0 < sample: each quantile rises by step * tau, tau = 1/4 and 3/4.
  for (const std::size_t k : {0, 2}) {
    EXPECT_DOUBLE_EQ(ensemble.member(k)[0], 0.025);
    EXPECT_DOUBLE_EQ(ensemble.member(k)[1], 0.075);
  }
  EXPECT_EQ(ensemble.member(1)[0], 0);
  EXPECT_EQ(ensemble.member(1)[1], 0);
}

TEST(QuantileEnsembleTest, TdErrorIsTheMeanOverMembersOfTheAbsoluteError) {
  QuantileEnsemble ensemble({.members = 2, .quantiles = 2});
  ensemble.member(0)[0] = 1;
  ensemble.member(0)[1] = 3;  // Q_0 = 2
  ensemble.member(1)[0] = 5;
  ensemble.member(1)[1] = 7;  // Q_1 = 6
  // Not |target - mean| = 0: the members' errors of 2 and -2 must not cancel.
  EXPECT_DOUBLE_EQ(ensemble.TdError(4), 2);
  EXPECT_DOUBLE_EQ(ensemble.Mean(), 4);
  EXPECT_DOUBLE_EQ(ensemble.MeanMemberVariance(), 1);
}

TEST(QuantileEnsembleTest, LearnsTheQuantilesOfADistribution) {
  QuantileEnsemble ensemble({.members = 1, .quantiles = 9});
  RandomStream stream(3, "samples");
  constexpr int kSteps = 400'000;
  for (int t = 0; t < kSteps; ++t) ensemble.Update(stream.Uniform(), 0.5 / std::sqrt(1.0 + t), 1);
  // The quantiles of U(0, 1) are the midpoints. Stochastic approximation with this step ends with a
  // standard deviation of about sqrt(step / 8) = 0.01; 4 of them.
  for (std::size_t i = 0; i < 9; ++i) {
    EXPECT_NEAR(ensemble.member(0)[i], (static_cast<double>(i) + 0.5) / 9, 0.04);
  }
}

TEST(QuantileEnsembleTest, RefusesMoreMembersThanMaskBits) {
  EXPECT_THROW(QuantileEnsemble({.members = 65, .quantiles = 1}), Error);
  EXPECT_THROW(QuantileEnsemble({.members = 0, .quantiles = 1}), Error);
}

}  // namespace
}  // namespace uper
