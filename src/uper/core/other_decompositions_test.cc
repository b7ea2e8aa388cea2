#include "uper/core/other_decompositions.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "uper/base/error.h"
#include "uper/base/random.h"

namespace uper {
namespace {

std::vector<double> RandomNumbers(std::size_t count, double mean, double deviation,
                                  RandomStream& random) {
  std::vector<double> numbers(count);
  for (double& x : numbers) x = mean + deviation * random.Normal();
  return numbers;
}

TEST(DeupTest, HandValues) {
  // Targets 1, 3, estimate 5: total ((1-5)^2 + (3-5)^2) / 2 = 10 = variance 1 + (5 - 2)^2.
  const std::vector<double> targets = {1, 3};
  const DeupUncertainty deup = DecomposeDeup(targets, 5);
  EXPECT_DOUBLE_EQ(deup.total, 10);
  EXPECT_DOUBLE_EQ(deup.aleatoric, 1);
  EXPECT_DOUBLE_EQ(deup.epistemic, 9);
}

TEST(DeupTest, TotalIsTheSumOfItsParts) {
  RandomStream random(1, "decompositions");
  for (int trial = 0; trial < 200; ++trial) {
    const auto targets = RandomNumbers(1 + random.UniformInt(40), 3, 2, random);
    const DeupUncertainty deup = DecomposeDeup(targets, 5 * random.Normal());
    EXPECT_NEAR(deup.total, deup.aleatoric + deup.epistemic, 1e-13 * deup.total);
  }
}

TEST(DeupTest, TheMeanHasNoEpistemicPart) {
  const std::vector<double> targets = {1, 3, 8};
  const DeupUncertainty best = DecomposeDeup(targets, 4);
  EXPECT_DOUBLE_EQ(best.epistemic, 0);
  EXPECT_DOUBLE_EQ(best.total, best.aleatoric);
}

TEST(QuantileErrorTest, HandValues) {
  // theta 0, 4 (mean 2, variance 4); rewards 5, 7, 9 (mean 7, variance 8/3). Distance^2 25.
  const std::vector<double> theta = {0, 4};
  const std::vector<double> rewards = {5, 7, 9};
  const QuantileErrorTerms terms = DecomposeQuantileError(theta, rewards);
  EXPECT_DOUBLE_EQ(terms.true_distance_sq, 25);
  EXPECT_DOUBLE_EQ(terms.target_variance, 8.0 / 3);
  EXPECT_DOUBLE_EQ(terms.estimation_variance, 4);
  // All pairs: (25 + 49 + 81 + 1 + 9 + 25) / 6 = 190 / 6; the errors of Q: (9 + 25 + 49) / 3.
  EXPECT_DOUBLE_EQ(terms.total_uncertainty(), 190.0 / 6);
  EXPECT_DOUBLE_EQ(terms.td_error_sq(), 83.0 / 3);
}

TEST(QuantileErrorTest, EqualsAllPairs) {
  RandomStream random(2, "decompositions");
  for (int trial = 0; trial < 100; ++trial) {
    const auto theta = RandomNumbers(1 + random.UniformInt(30), 1, 3, random);
    const auto rewards = RandomNumbers(1 + random.UniformInt(30), -1, 2, random);
    double mean = 0;
    for (const double t : theta) mean += t / static_cast<double>(theta.size());
    double pairs = 0;
    double td = 0;
    for (const double r : rewards) {
      for (const double t : theta) pairs += (r - t) * (r - t);
      td += (r - mean) * (r - mean);
    }
    const double n = static_cast<double>(rewards.size());
    const QuantileErrorTerms terms = DecomposeQuantileError(theta, rewards);
    const double total = pairs / (n * static_cast<double>(theta.size()));
    EXPECT_NEAR(terms.total_uncertainty(), total, 1e-12 * total);
    EXPECT_NEAR(terms.td_error_sq(), td / n, 1e-12 * total);
  }
}

TEST(DecompositionsTest, EmptySamplesAreRefused) {
  const std::vector<double> one = {1};
  EXPECT_THROW(DecomposeDeup({}, 0), Error);
  EXPECT_THROW(DecomposeQuantileError({}, one), Error);
  EXPECT_THROW(DecomposeQuantileError(one, {}), Error);
}

TEST(BayesTest, PosteriorVarianceHandValues) {
  EXPECT_DOUBLE_EQ(PosteriorVariance(1, 1), 0.5);
  EXPECT_DOUBLE_EQ(PosteriorVariance(4, 12), 3);  // 48 / 16
  EXPECT_DOUBLE_EQ(PosteriorVariance(12, 4), 3);
  EXPECT_DOUBLE_EQ(PosteriorVariance(1e200, 1e200), 5e199);  // the product overflows
  EXPECT_DOUBLE_EQ(PosteriorVariance(2, 1e300), 2);          // a useless sample
}

TEST(BayesTest, GaussianEntropyHandValues) {
  // 1/2 ln(2 pi e) = 1.4189385332046727; a doubled standard deviation adds ln 2.
  EXPECT_DOUBLE_EQ(GaussianEntropy(1), 1.4189385332046727);
  EXPECT_DOUBLE_EQ(GaussianEntropy(4), 1.4189385332046727 + 0.6931471805599453);
}

}  // namespace
}  // namespace uper
