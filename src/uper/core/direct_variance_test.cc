#include "uper/core/direct_variance.h"

#include <gtest/gtest.h>

#include "uper/base/random.h"

namespace uper {
namespace {

TEST(VarianceTdStepTest, HandValues) {
  // 1 + 0.1 * (2^2 + 0.5^2 * 4 - 1) = 1.4
  EXPECT_DOUBLE_EQ(VarianceTdStep(1, 2, 0.5, 4, 0.1), 1.4);
  EXPECT_DOUBLE_EQ(VarianceTdStep(1, -2, 0.5, 4, 0.1), 1.4);
  EXPECT_DOUBLE_EQ(VarianceTdStep(1, 2, 0, 4, 0.1), 1.3);  // 1 + 0.1 * (4 - 1)
  EXPECT_EQ(VarianceTdStep(1, 2, 0.5, 4, 0), 1);
  EXPECT_EQ(VarianceTdStep(1, 2, 0.5, 4, 1), 5);
}

TEST(VarianceTdStepTest, FixedPointOfALoop) {
  // A state that leads to itself, noise variance 0.09, discount 0.9: A = 0.09 + 0.81 A, so
  // A = 0.09 / 0.19, the variance of the discounted sum. Each step shrinks the error by 1 - 0.19/2.
  double variance = 0;
  for (int i = 0; i < 400; ++i) variance = VarianceTdStep(variance, 0.3, 0.9, variance, 0.5);
  EXPECT_NEAR(variance, 0.09 / 0.19, 1e-14);
}

TEST(VarianceTdStepTest, EstimatesTheVarianceOfNoise) {
  // Steps of size s on squared normals (variance 2 around 1): stationary variance 2 s / (2 - s) =
  // 0.001 for s = 0.001; four standard deviations are 0.127.
  RandomStream random(1, "variance");
  double variance = 0.1;
  for (int i = 0; i < 20000; ++i) variance = VarianceTdStep(variance, random.Normal(), 0, 0, 0.001);
  EXPECT_NEAR(variance, 1, 0.127);
}

TEST(VarianceTdStepTest, NeverNegative) {
  RandomStream random(2, "variance");
  double variance = 0;
  for (int i = 0; i < 10000; ++i) {
    variance = VarianceTdStep(variance, random.Bernoulli(0.5) ? 0 : 1e-3 * random.Normal(),
                              random.Uniform(), variance * random.Uniform(), random.Uniform());
    EXPECT_GE(variance, 0);
  }
}

}  // namespace
}  // namespace uper
