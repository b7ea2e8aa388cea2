#include "uper/core/quantile.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "uper/base/error.h"
#include "uper/base/random.h"

namespace uper {
namespace {

template <typename Real>
struct Result {
  Real loss;
  std::vector<Real> gradient;
};

template <typename Real>
Result<Real> Pairwise(const std::vector<Real>& theta, const std::vector<Real>& targets,
                      Real kappa) {
  Result<Real> result{.loss = 0, .gradient = std::vector<Real>(theta.size(), Real{77})};
  result.loss = QuantileHuberPairwise<Real>(theta, targets, kappa, result.gradient);
  return result;
}

template <typename Real>
Result<Real> Sorted(const std::vector<Real>& theta, const std::vector<Real>& targets, Real kappa) {
  QuantileHuberSorter<Real> sorter(targets.size());
  Result<Real> result{.loss = 0, .gradient = std::vector<Real>(theta.size(), Real{77})};
  result.loss = sorter.Loss(theta, targets, kappa, result.gradient);
  return result;
}

TEST(QuantileMidpointTest, HandValues) {
  EXPECT_EQ(QuantileMidpoint(0, 1), 0.5);
  EXPECT_EQ(QuantileMidpoint(0, 4), 0.125);
  EXPECT_EQ(QuantileMidpoint(3, 4), 0.875);
  EXPECT_EQ(QuantileMidpoint(100, 201), 0.5);
}

TEST(QuantileRegressionStepTest, HandValues) {
  // tau = 0.25, 0.75; sample 1: theta_0 = 0 is below it and rises by 0.1 * 0.25; theta_1 = 2 is
  // above and falls by 0.1 * (1 - 0.75).
  std::vector<double> theta = {0, 2};
  QuantileRegressionStep(theta, QuantileMidpoints(theta.size()), 1, 0.1);
  EXPECT_DOUBLE_EQ(theta[0], 0.025);
  EXPECT_DOUBLE_EQ(theta[1], 1.975);
}

TEST(QuantileRegressionStepTest, AnEqualSampleCountsAsAbove) {
  std::vector<double> theta = {1};
  QuantileRegressionStep(theta, QuantileMidpoints(theta.size()), 1, 0.2);
  EXPECT_DOUBLE_EQ(theta[0], 1.1);  // 1 + 0.2 * 0.5
}

TEST(QuantileRegressionStepTest, UsesTheMidpoints) {
  for (const std::size_t m : {1, 3, 30, 201}) {
    std::vector<double> theta(m, 0.0);
    QuantileRegressionStep(theta, QuantileMidpoints(theta.size()), 1, 1);
    for (std::size_t i = 0; i < m; ++i) EXPECT_EQ(theta[i], QuantileMidpoint(i, m));
  }
}

TEST(QuantileRegressionStepTest, FindsTheQuantilesOfItsSamples) {
  // Uniform(0, 1) samples: theta_i -> tau_i. The stationary variance of a step of size s is about
  // s * tau (1 - tau) / 2 <= s / 8 (density 1): 0.0112 standard deviations for s = 0.001; the bound
  // is four of them. The start is 3 / (0.001 * 0.1) = 30,000 steps away at most.
  RandomStream random(1, "quantile step");
  std::vector<double> theta(5, 3.0);
  const std::vector<double> midpoints = QuantileMidpoints(5);
  for (int i = 0; i < 100000; ++i) {
    QuantileRegressionStep(theta, midpoints, random.Uniform(), 0.001);
  }
  for (std::size_t i = 0; i < 5; ++i) EXPECT_NEAR(theta[i], QuantileMidpoint(i, 5), 0.045);
}

// theta (0, 1), targets (0.5, 3), tau (0.25, 0.75); u = 0.5, 3 and -0.5, 2.
template <typename Real>
void CheckHandValues(Result<Real> (*loss)(const std::vector<Real>&, const std::vector<Real>&,
                                          Real)) {
  const std::vector<Real> theta = {0, 1};
  const std::vector<Real> targets = {Real(0.5), 3};
  // kappa 1. i=0: 0.25 * (0.125 + 2.5) / 2 = 0.328125; i=1: (0.25 * 0.125 + 0.75 * 1.5) / 2 =
  // 0.578125. Gradients: -0.25 * (0.5 + 1) / 2 = -0.1875; -(0.25 * -0.5 + 0.75 * 1) / 2 = -0.3125.
  const Result<Real> one = loss(theta, targets, 1);
  EXPECT_DOUBLE_EQ(one.loss, 0.90625);
  EXPECT_DOUBLE_EQ(one.gradient[0], -0.1875);
  EXPECT_DOUBLE_EQ(one.gradient[1], -0.3125);
  // kappa 2, not divided by it. i=0: 0.25 * (0.125 + 2 * (3 - 1)) / 2 = 0.515625; i=1: (0.25 *
  // 0.125 + 0.75 * 2) / 2 = 0.765625. Gradients: -0.25 * (0.5 + 2) / 2; -(-0.125 + 0.75 * 2) / 2.
  const Result<Real> two = loss(theta, targets, 2);
  EXPECT_DOUBLE_EQ(two.loss, 1.28125);
  EXPECT_DOUBLE_EQ(two.gradient[0], -0.3125);
  EXPECT_DOUBLE_EQ(two.gradient[1], -0.6875);
  // kappa 0. i=0: 0.25 * 3.5 / 2 = 0.4375; i=1: (0.25 * 0.5 + 0.75 * 2) / 2 = 0.8125. Gradients:
  // -0.25 * 2 / 2; -(-0.25 + 0.75) / 2.
  const Result<Real> zero = loss(theta, targets, 0);
  EXPECT_DOUBLE_EQ(zero.loss, 1.25);
  EXPECT_DOUBLE_EQ(zero.gradient[0], -0.25);
  EXPECT_DOUBLE_EQ(zero.gradient[1], -0.25);
}

template <typename Real>
class QuantileHuberTest : public testing::Test {};
using Reals = testing::Types<float, double>;
TYPED_TEST_SUITE(QuantileHuberTest, Reals);

TYPED_TEST(QuantileHuberTest, HandValues) {
  CheckHandValues<TypeParam>(Pairwise<TypeParam>);
  CheckHandValues<TypeParam>(Sorted<TypeParam>);
}

TYPED_TEST(QuantileHuberTest, EqualNumbersCostNothing) {
  for (const TypeParam kappa : {TypeParam(0), TypeParam(1)}) {
    const std::vector<TypeParam> same(7, TypeParam(0.1));
    for (const auto& result : {Pairwise(same, same, kappa), Sorted(same, same, kappa)}) {
      EXPECT_EQ(result.loss, 0);
      for (const TypeParam g : result.gradient) EXPECT_EQ(g, 0);
    }
  }
}

// The terms of the sums are as large as `size`. Sums in double differ by a few roundings of it,
// results in float by a few roundings of float.
template <typename Real>
void ExpectSortedEqualsPairwise(const std::vector<Real>& theta, const std::vector<Real>& targets,
                                Real kappa, double size) {
  const Result<Real> pairwise = Pairwise(theta, targets, kappa);
  const Result<Real> sorted = Sorted(theta, targets, kappa);
  const double relative = std::is_same_v<Real, double> ? 1e-12 : 3e-7;
  const double m = static_cast<double>(theta.size());
  const double scale = kappa == 0 ? 1.0 : static_cast<double>(kappa);
  EXPECT_NEAR(sorted.loss, pairwise.loss, relative * m * scale * size);
  EXPECT_GE(sorted.loss, 0);
  for (std::size_t i = 0; i < theta.size(); ++i) {
    EXPECT_NEAR(sorted.gradient[i], pairwise.gradient[i], relative * scale * std::max(1.0, size));
  }
}

TYPED_TEST(QuantileHuberTest, SortedEqualsPairwise) {
  RandomStream random(2, "quantile loss");
  for (int trial = 0; trial < 400; ++trial) {
    const std::size_t m = 1 + random.UniformInt(trial % 4 == 0 ? 1 : 60);
    const std::size_t n = 1 + random.UniformInt(trial % 4 == 1 ? 1 : 60);
    const double spread = std::exp2(random.Uniform() * 12 - 6);
    const double offset = trial % 3 == 0 ? 1e6 : 0;
    const bool ties = trial % 5 == 0;
    const auto draw = [&] {
      const double x = spread * random.Normal();
      return static_cast<TypeParam>(offset + (ties ? std::round(x) : x));
    };
    std::vector<TypeParam> theta(m);
    std::vector<TypeParam> targets(n);
    std::generate(theta.begin(), theta.end(), draw);
    std::generate(targets.begin(), targets.end(), draw);
    // With ties and kappa = 0, 1, 2 many pairs lie exactly on a kink.
    for (const double kappa : {0.0, 1.0, 2.0, 0.37, 1e3}) {
      SCOPED_TRACE(std::to_string(trial) + " kappa " + std::to_string(kappa));
      ExpectSortedEqualsPairwise(theta, targets, static_cast<TypeParam>(kappa), 10 * spread + 1);
    }
  }
}

TYPED_TEST(QuantileHuberTest, OrderOfTargetsDoesNotMatter) {
  const std::vector<TypeParam> theta = {3, 0, 1};
  const std::vector<TypeParam> up = {-1, 0, 2, 5};
  const std::vector<TypeParam> mixed = {2, -1, 5, 0};
  const auto a = Sorted<TypeParam>(theta, up, 1);
  const auto b = Sorted<TypeParam>(theta, mixed, 1);
  EXPECT_EQ(a.loss, b.loss);
  EXPECT_EQ(a.gradient, b.gradient);
}

TYPED_TEST(QuantileHuberTest, SorterForgetsTheLastCall) {
  QuantileHuberSorter<TypeParam> sorter(5);
  std::vector<TypeParam> gradient(2);
  const std::vector<TypeParam> theta = {0, 1};
  const std::vector<TypeParam> many = {9, 8, 7, 6, 5};
  sorter.Loss(theta, many, 1, gradient);
  const std::vector<TypeParam> few = {TypeParam(0.5), 3};
  EXPECT_DOUBLE_EQ(sorter.Loss(theta, few, 1, gradient), 0.90625);
  EXPECT_DOUBLE_EQ(gradient[0], -0.1875);
}

TEST(QuantileHuberGradientTest, EqualsCentralDifferences) {
  // Error of a central difference: h^2 / 6 times the third derivative (0 away from kinks, the loss
  // is quadratic there) plus rounding, 1e-16 * loss / h = 1e-9 for h = 1e-5.
  RandomStream random(3, "quantile loss");
  const double h = 1e-5;
  int compared = 0;
  for (int trial = 0; trial < 50; ++trial) {
    std::vector<double> theta(6);
    std::vector<double> targets(8);
    for (double& x : theta) x = 2 * random.Normal();
    for (double& x : targets) x = 2 * random.Normal();
    for (const double kappa : {0.0, 1.0, 0.5}) {
      const std::vector<double> gradient = Sorted(theta, targets, kappa).gradient;
      for (std::size_t i = 0; i < theta.size(); ++i) {
        const bool near_kink = std::any_of(targets.begin(), targets.end(), [&](double target) {
          const double u = std::abs(target - theta[i]);
          return u < 10 * h || std::abs(u - kappa) < 10 * h;
        });
        if (near_kink) continue;
        auto up = theta;
        auto down = theta;
        up[i] += h;
        down[i] -= h;
        const double slope =
            (Pairwise(up, targets, kappa).loss - Pairwise(down, targets, kappa).loss) / (2 * h);
        EXPECT_NEAR(gradient[i], slope, 1e-8);
        ++compared;
      }
    }
  }
  EXPECT_GT(compared, 800);  // of 900
}

TYPED_TEST(QuantileHuberTest, NotFiniteInIsNotFiniteOut) {
  const TypeParam nan = std::numeric_limits<TypeParam>::quiet_NaN();
  const TypeParam infinity = std::numeric_limits<TypeParam>::infinity();
  for (const TypeParam kappa : {TypeParam(0), TypeParam(1)}) {
    for (const TypeParam bad : {nan, infinity, -infinity}) {
      const std::vector<TypeParam> good = {1, 2, 3, 4, 5};
      std::vector<TypeParam> spoilt = good;
      spoilt[2] = bad;
      EXPECT_FALSE(std::isfinite(Pairwise(good, spoilt, kappa).loss));
      EXPECT_FALSE(std::isfinite(Sorted(good, spoilt, kappa).loss));
      EXPECT_FALSE(std::isfinite(Pairwise(spoilt, good, kappa).loss));
      EXPECT_FALSE(std::isfinite(Sorted(spoilt, good, kappa).loss));
    }
  }
}

TYPED_TEST(QuantileHuberTest, SorterIsNotConfusedByNumbersWithoutOrder) {
  // NaN breaks the order that sorting needs: with many of them a sort may access memory outside.
  for (const TypeParam bad :
       {std::numeric_limits<TypeParam>::quiet_NaN(), std::numeric_limits<TypeParam>::infinity()}) {
    std::vector<TypeParam> targets(201);
    for (std::size_t i = 0; i < targets.size(); ++i) {
      targets[i] = i % 3 == 1 ? bad : static_cast<TypeParam>(i * 37 % 101);
    }
    const auto result = Sorted<TypeParam>({1, 2, 3}, targets, 1);
    EXPECT_TRUE(std::isnan(result.loss));
    for (const TypeParam g : result.gradient) EXPECT_TRUE(std::isnan(g));
  }
}

TYPED_TEST(QuantileHuberTest, ContractsAreChecked) {
  QuantileHuberSorter<TypeParam> sorter(2);
  const std::vector<TypeParam> two = {1, 2};
  const std::vector<TypeParam> three = {1, 2, 3};
  std::vector<TypeParam> gradient(2);
  EXPECT_THROW(sorter.Loss(two, three, 1, gradient), Error);
  EXPECT_THROW(sorter.Loss(three, two, 1, gradient), Error);
  EXPECT_THROW(sorter.Loss(two, {}, 1, gradient), Error);
  EXPECT_THROW(sorter.Loss(two, two, -1, gradient), Error);
  EXPECT_THROW(QuantileHuberPairwise<TypeParam>(two, two, -1, gradient), Error);
  EXPECT_THROW(QuantileHuberPairwise<TypeParam>({}, two, 1, {}), Error);
  EXPECT_THROW(QuantileHuberSorter<TypeParam>(0), Error);
}

}  // namespace
}  // namespace uper
