#include "uper/nn/cpu/kernels/quantile_huber.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "uper/core/quantile.h"
#include "uper/nn/cpu/kernels/simd_info.h"
#include "uper/nn/learner_data_for_tests.h"

namespace uper::cpu {
namespace {

constexpr int kSizes[] = {1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 51, 201};
constexpr float kKappas[] = {0, 0.1F, 1, 5};
// Tolerance for sums of up to 201 floats; each addition may lose 6e-8.
constexpr double kTolerance = 5e-6;

struct Result {
  double loss = 0;
  std::vector<float> gradient;
};

Result Simd(const std::vector<float>& theta, const std::vector<float>& targets, float kappa) {
  Result result{.gradient = std::vector<float>(theta.size(), 77)};
  result.loss = QuantileHuberSimd(theta, targets, kappa, result.gradient);
  return result;
}

TEST(QuantileHuberSimdTest, AgreesWithThePairwiseReference) {
  for (const int m : kSizes) {
    for (const int n : kSizes) {
      const auto theta = RandomFloats(m, "theta " + std::to_string(n));
      const auto targets = RandomFloats(n, "targets " + std::to_string(m));
      const std::vector<double> theta_d(theta.begin(), theta.end());
      const std::vector<double> targets_d(targets.begin(), targets.end());
      for (const float kappa : kKappas) {
        std::vector<double> gradient(m);
        const double loss =
            QuantileHuberPairwise<double>(theta_d, targets_d, double{kappa}, gradient);
        const Result simd = Simd(theta, targets, kappa);
        EXPECT_NEAR(simd.loss, loss, kTolerance * loss) << m << " " << n << " " << kappa;
        EXPECT_LT(RelativeError(simd.gradient, gradient), kTolerance)
            << m << " " << n << " " << kappa;
      }
    }
  }
}

TEST(QuantileHuberSimdTest, HandValues) {
  // u = [1 2; 0 1], tau = 1/4, 3/4.
  const Result huber = Simd({0, 1}, {1, 2}, 1);
  EXPECT_DOUBLE_EQ(huber.loss, 0.4375);
  EXPECT_EQ(huber.gradient, (std::vector<float>{-0.25F, -0.375F}));
  const Result plain = Simd({0, 1}, {1, 2}, 0);
  EXPECT_DOUBLE_EQ(plain.loss, 0.75);
  EXPECT_EQ(plain.gradient, (std::vector<float>{-0.25F, -0.375F}));
  // Below: weights 1 - tau.
  const Result below = Simd({0, 1}, {-3, -3}, 1);
  EXPECT_DOUBLE_EQ(below.loss, 0.75 * 2.5 + 0.25 * 3.5);
  EXPECT_EQ(below.gradient, (std::vector<float>{0.75F, 0.25F}));
}

TEST(QuantileHuberSimdTest, EqualQuantilesAddNothing) {
  for (const float kappa : kKappas) {
    const Result result = Simd({2, 2, 2}, {2, 2}, kappa);
    EXPECT_EQ(result.loss, 0);
    EXPECT_EQ(result.gradient, (std::vector<float>{0, 0, 0}));
  }
}

TEST(QuantileHuberSimdTest, SameBitsOnEveryInstructionSet) {
  for (const int m : kSizes) {
    const auto theta = RandomFloats(m, "theta");
    const auto targets = RandomFloats(m + 4, "targets");
    for (const float kappa : kKappas) {
      const Result best = Simd(theta, targets, kappa);
      for (const std::int64_t target : RunnableSimdTargets()) {
        UseSimdTarget(target);
        const Result result = Simd(theta, targets, kappa);
        EXPECT_EQ(result.loss, best.loss) << SimdTargetName() << " " << m;
        EXPECT_TRUE(SameBits(result.gradient, best.gradient)) << SimdTargetName() << " " << m;
      }
      UseSimdTarget(0);
    }
  }
}

TEST(QuantileHuberSimdTest, WhatIsNotFiniteShows) {
  const float bad[] = {std::numeric_limits<float>::quiet_NaN(),
                       std::numeric_limits<float>::infinity()};
  for (const std::int64_t target : RunnableSimdTargets()) {
    UseSimdTarget(target);
    for (const float kappa : kKappas) {
      for (const float value : bad) {
        EXPECT_FALSE(std::isfinite(Simd({0, 1, 2}, {1, value}, kappa).loss));
        EXPECT_FALSE(std::isfinite(Simd({0, value, 2}, {1, 0}, kappa).loss));
      }
    }
  }
  UseSimdTarget(0);
}

}  // namespace
}  // namespace uper::cpu
