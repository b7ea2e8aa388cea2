#include "uper/core/uncertainty.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "uper/base/error.h"
#include "uper/base/random.h"

namespace uper {
namespace {

template <typename Real>
using Array = std::vector<Real>;

// The definitions, term by term in extended precision.
struct Naive {
  long double mean = 0;
  long double epistemic = 0;
  long double aleatoric = 0;
};

template <typename Real>
Naive NaiveDecomposition(const Array<Real>& theta, EnsembleShape shape) {
  const auto members = static_cast<long double>(shape.members);
  const auto quantiles = static_cast<long double>(shape.quantiles);
  std::vector<long double> mean(shape.quantiles, 0);
  Naive naive;
  for (std::size_t t = 0; t < shape.quantiles; ++t) {
    for (std::size_t k = 0; k < shape.members; ++k) mean[t] += theta[k * shape.quantiles + t];
    mean[t] /= members;
    naive.mean += mean[t] / quantiles;
    for (std::size_t k = 0; k < shape.members; ++k) {
      const long double deviation = theta[k * shape.quantiles + t] - mean[t];
      naive.epistemic += deviation * deviation / (members * quantiles);
    }
  }
  for (const long double m : mean) {
    naive.aleatoric += (m - naive.mean) * (m - naive.mean) / quantiles;
  }
  return naive;
}

// E[(target - theta)^2].
template <typename Real>
long double NaiveTotalDelta(const Array<Real>& theta, double target) {
  long double sum = 0;
  for (const Real value : theta) {
    const long double distance = static_cast<long double>(target) - value;
    sum += distance * distance;
  }
  return sum / static_cast<long double>(theta.size());
}

// The mean of (T - theta)^2 over members and all pairs of quantiles.
template <typename Real>
long double NaivePairs(const Array<Real>& theta, const Array<Real>& next, EnsembleShape shape,
                       double reward, double discount) {
  long double sum = 0;
  for (std::size_t k = 0; k < shape.members; ++k) {
    for (std::size_t i = 0; i < shape.quantiles; ++i) {
      for (std::size_t j = 0; j < shape.quantiles; ++j) {
        const long double target =
            reward + static_cast<long double>(discount) * next[k * shape.quantiles + j];
        const long double distance = target - theta[k * shape.quantiles + i];
        sum += distance * distance;
      }
    }
  }
  const auto pairs = static_cast<long double>(shape.members * shape.quantiles * shape.quantiles);
  return sum / pairs;
}

// A kind of array and the size of its numbers, for tolerances.
struct Family {
  std::string name;
  std::function<double(RandomStream&, std::size_t member, std::size_t quantile)> value;
};

std::vector<Family> Families() {
  return {
      {"normal", [](RandomStream& r, std::size_t, std::size_t) { return r.Normal(); }},
      {"offset 1e8",
       [](RandomStream& r, std::size_t, std::size_t) { return 1e8 + 100 * r.Normal(); }},
      {"tiny spread", [](RandomStream& r, std::size_t,
                         std::size_t t) { return static_cast<double>(t) + 1e-6 * r.Normal(); }},
      {"mixed magnitudes",
       [](RandomStream& r, std::size_t, std::size_t) {
         return (r.Bernoulli(0.5) ? 1 : -1) * std::exp2(r.Uniform() * 60 - 30);
       }},
      {"first is an outlier",
       [](RandomStream& r, std::size_t k, std::size_t t) { return k + t == 0 ? 1e8 : r.Normal(); }},
      {"small", [](RandomStream& r, std::size_t, std::size_t) { return 1e-15 * r.Normal(); }},
  };
}

// Around the block length 64, the shapes of the paper, and single rows and columns.
std::vector<EnsembleShape> Shapes() {
  return {{1, 1},    {1, 7},  {7, 1},  {2, 2},  {3, 5},   {10, 51}, {30, 30},
          {10, 201}, {5, 64}, {5, 65}, {65, 3}, {64, 64}, {70, 130}};
}

template <typename Real>
Array<Real> MakeArray(const Family& family, EnsembleShape shape, RandomStream& random) {
  Array<Real> theta(shape.members * shape.quantiles);
  for (std::size_t i = 0; i < theta.size(); ++i) {
    theta[i] = static_cast<Real>(family.value(random, i / shape.quantiles, i % shape.quantiles));
  }
  return theta;
}

template <typename Real>
double LargestSize(const Array<Real>& theta) {
  double largest = 0;
  for (const Real value : theta) largest = std::max(largest, std::abs(static_cast<double>(value)));
  return largest;
}

void ExpectRelative(double value, long double expected, double relative, const char* what) {
  EXPECT_NEAR(value, static_cast<double>(expected),
              relative * std::abs(static_cast<double>(expected)))
      << what;
}

void ExpectNonNegative(const Uncertainty& u) {
  for (const double part : {u.epistemic, u.aleatoric, u.target_distance_sq, u.epistemic_delta,
                            u.total, u.total_delta}) {
    EXPECT_TRUE(std::isfinite(part) && part >= 0) << part;
  }
}

template <typename Real>
class UncertaintyTest : public testing::Test {};
using Reals = testing::Types<float, double>;
TYPED_TEST_SUITE(UncertaintyTest, Reals);

TYPED_TEST(UncertaintyTest, HandValues) {
  // Members (1, 3) and (3, 9), target 8. Means over members 2 and 6; variances over members
  // (1 + 1) / 2 = 1 and (9 + 9) / 2 = 9. E = (1 + 9) / 2 = 5; Q = 4; A = ((2-4)^2 + (6-4)^2) / 2
  // = 4; target distance^2 = (8 - 4)^2 = 16. U_delta = (49 + 25 + 25 + 1) / 4 = 25 = 16 + 5 + 4.
  const Array<TypeParam> theta = {1, 3, 3, 9};
  const Uncertainty u = DecomposeScalarTarget<TypeParam>(theta, {2, 2}, 8);
  EXPECT_DOUBLE_EQ(u.mean, 4);
  EXPECT_DOUBLE_EQ(u.epistemic, 5);
  EXPECT_DOUBLE_EQ(u.aleatoric, 4);
  EXPECT_DOUBLE_EQ(u.total, 9);
  EXPECT_DOUBLE_EQ(u.target_distance_sq, 16);
  EXPECT_DOUBLE_EQ(u.epistemic_delta, 21);
  EXPECT_DOUBLE_EQ(u.total_delta, 25);
}

TYPED_TEST(UncertaintyTest, MembersAreRowsAndQuantilesColumns) {
  // One member with quantiles 0 and 2 has aleatoric uncertainty only. Two members with values 0 and
  // 2 have epistemic uncertainty only.
  const Array<TypeParam> theta = {0, 2};
  const Uncertainty one_member = DecomposeScalarTarget<TypeParam>(theta, {1, 2}, 1);
  EXPECT_EQ(one_member.epistemic, 0);
  EXPECT_EQ(one_member.aleatoric, 1);
  const Uncertainty two_members = DecomposeScalarTarget<TypeParam>(theta, {2, 1}, 1);
  EXPECT_EQ(two_members.epistemic, 1);
  EXPECT_EQ(two_members.aleatoric, 0);
}

TYPED_TEST(UncertaintyTest, EqualsTheDefinitions) {
  RandomStream random(2, "uncertainty");
  for (const Family& family : Families()) {
    for (const EnsembleShape shape : Shapes()) {
      SCOPED_TRACE(family.name + " " + std::to_string(shape.members) + "x" +
                   std::to_string(shape.quantiles));
      const auto theta = MakeArray<TypeParam>(family, shape, random);
      const double target = static_cast<double>(theta[0]) + random.Normal();
      const Uncertainty u = DecomposeScalarTarget<TypeParam>(theta, shape, target);
      const Naive naive = NaiveDecomposition(theta, shape);
      ExpectNonNegative(u);
      // Sums of at most 9100 terms, each good to a few roundings of 1.1e-16.
      ExpectRelative(u.epistemic, naive.epistemic, 1e-12, "E");
      ExpectRelative(u.aleatoric, naive.aleatoric, 1e-12, "A");
      ExpectRelative(u.total, naive.epistemic + naive.aleatoric, 1e-12, "U");
      const long double total_delta = NaiveTotalDelta(theta, target);
      // The error of the mean is a few roundings of the largest number. The squared distance
      // contains it once more.
      const double mean_error = 1e-15 * LargestSize(theta);
      EXPECT_NEAR(u.mean, static_cast<double>(naive.mean), mean_error);
      const double tolerance = 1e-12 * static_cast<double>(total_delta) +
                               2 * mean_error * std::sqrt(u.target_distance_sq);
      EXPECT_NEAR(u.total_delta, static_cast<double>(total_delta), tolerance);
      EXPECT_NEAR(u.epistemic_delta, static_cast<double>(total_delta - naive.aleatoric), tolerance);
    }
  }
}

TYPED_TEST(UncertaintyTest, PartsAddUp) {
  RandomStream random(3, "uncertainty");
  const auto theta = MakeArray<TypeParam>(Families()[3], {10, 51}, random);
  const Uncertainty u = DecomposeScalarTarget<TypeParam>(theta, {10, 51}, 0.5);
  EXPECT_EQ(u.total, u.epistemic + u.aleatoric);
  EXPECT_EQ(u.epistemic_delta, u.target_distance_sq + u.epistemic);
  EXPECT_EQ(u.total_delta, u.epistemic_delta + u.aleatoric);
}

TYPED_TEST(UncertaintyTest, EqualMembersDoNotDisagreeAtAll) {
  RandomStream random(4, "uncertainty");
  for (const std::size_t members : {1, 2, 3, 10, 30, 67}) {
    for (const double offset : {0.0, 0.1, 1e8}) {
      Array<TypeParam> row(70);
      for (TypeParam& value : row) value = static_cast<TypeParam>(offset + 100 * random.Normal());
      Array<TypeParam> theta;
      for (std::size_t k = 0; k < members; ++k) theta.insert(theta.end(), row.begin(), row.end());
      const Uncertainty scalar = DecomposeScalarTarget<TypeParam>(theta, {members, 70}, offset);
      EXPECT_EQ(scalar.epistemic, 0);
      EXPECT_GT(scalar.aleatoric, 0);
      EXPECT_EQ(scalar.epistemic_delta, scalar.target_distance_sq);
      EXPECT_EQ(
          DecomposeTargetQuantiles<TypeParam>(theta, theta, {members, 70}, 0.3, 0.9).epistemic, 0);
    }
  }
}

TYPED_TEST(UncertaintyTest, EqualQuantilesHaveNoSpread) {
  const EnsembleShape shape = {3, 70};
  Array<TypeParam> theta(shape.members * shape.quantiles);
  for (std::size_t i = 0; i < theta.size(); ++i) {
    const std::size_t member = i / shape.quantiles;
    theta[i] = static_cast<TypeParam>(0.1) * static_cast<TypeParam>(member);
  }
  const Uncertainty u = DecomposeScalarTarget<TypeParam>(theta, shape, 0);
  EXPECT_EQ(u.aleatoric, 0);
  EXPECT_GT(u.epistemic, 0);
}

TYPED_TEST(UncertaintyTest, DenormalsStayFiniteAndKeepTheMean) {
  const TypeParam tiny = std::numeric_limits<TypeParam>::denorm_min();
  const Array<TypeParam> theta = {tiny, 3 * tiny, 5 * tiny, 7 * tiny};
  for (const EnsembleShape shape :
       {EnsembleShape{2, 2}, EnsembleShape{1, 4}, EnsembleShape{4, 1}}) {
    const Uncertainty u = DecomposeScalarTarget<TypeParam>(theta, shape, 0);
    ExpectNonNegative(u);
    EXPECT_EQ(u.mean, 4 * static_cast<double>(tiny));
    ExpectNonNegative(DecomposeTargetQuantiles<TypeParam>(theta, theta, shape, 0, 1));
  }
}

TYPED_TEST(UncertaintyTest, LargeFiniteInputsGiveFiniteResults) {
  // Squares of 1e38 fit a double: nothing may be squared in float.
  const auto large = static_cast<TypeParam>(1e38);
  const Array<TypeParam> theta = {large, -large, large, large};
  ExpectNonNegative(DecomposeScalarTarget<TypeParam>(theta, {2, 2}, -1e38));
  ExpectNonNegative(DecomposeTargetQuantiles<TypeParam>(theta, theta, {2, 2}, 1, 0.99));
}

TYPED_TEST(UncertaintyTest, NotANumberIsNotHidden) {
  const TypeParam nan = std::numeric_limits<TypeParam>::quiet_NaN();
  const Array<TypeParam> theta = {1, 2, nan, 4};
  EXPECT_TRUE(std::isnan(DecomposeScalarTarget<TypeParam>(theta, {2, 2}, 0).epistemic_delta));
  const Array<TypeParam> good = {1, 2, 3, 4};
  EXPECT_TRUE(
      std::isnan(DecomposeTargetQuantiles<TypeParam>(good, theta, {2, 2}, 0, 1).epistemic_delta));
}

TYPED_TEST(UncertaintyTest, ShapesAreChecked) {
  const Array<TypeParam> theta(6);
  const Array<TypeParam> other(4);
  EXPECT_THROW(DecomposeScalarTarget<TypeParam>(theta, {2, 2}, 0), Error);
  EXPECT_THROW(DecomposeScalarTarget<TypeParam>({}, {0, 0}, 0), Error);
  EXPECT_THROW(DecomposeTargetQuantiles<TypeParam>(theta, other, {2, 3}, 0, 1), Error);
  EXPECT_THROW(DecomposeTargetQuantiles<TypeParam>(theta, theta, {3, 3}, 0, 1), Error);
}

TYPED_TEST(UncertaintyTest, TargetQuantilesHandValues) {
  // theta: members (0, 2), (2, 4); targets: members (2, 6), (4, 4); reward 1, discount 1/2.
  // T = (2, 4), (3, 3). Mean theta 1, 3; Q = 2; A: means over members 1, 3, variance 1.
  // U_delta: member 0: (4 + 16 + 0 + 4) / 4 = 6; member 1: (1 + 1 + 1 + 1) / 4 = 1; mean 3.5.
  // E_delta = 2.5 = 1/4 * (4 + 0) / 2 + ((3-1)^2 + (3-3)^2) / 2 + 0.
  // Target distance: mean T = 3, Q = 2.
  const Array<TypeParam> theta = {0, 2, 2, 4};
  const Array<TypeParam> next = {2, 6, 4, 4};
  const Uncertainty u = DecomposeTargetQuantiles<TypeParam>(theta, next, {2, 2}, 1, 0.5);
  EXPECT_DOUBLE_EQ(u.mean, 2);
  EXPECT_DOUBLE_EQ(u.epistemic, 1);
  EXPECT_DOUBLE_EQ(u.aleatoric, 1);
  EXPECT_DOUBLE_EQ(u.target_distance_sq, 1);
  EXPECT_DOUBLE_EQ(u.epistemic_delta, 2.5);
  EXPECT_DOUBLE_EQ(u.total_delta, 3.5);
  EXPECT_DOUBLE_EQ(u.total, 2);
}

TYPED_TEST(UncertaintyTest, TargetQuantilesEqualAllPairs) {
  RandomStream random(5, "uncertainty");
  for (const Family& family : Families()) {
    for (const EnsembleShape shape : Shapes()) {
      SCOPED_TRACE(family.name + " " + std::to_string(shape.members) + "x" +
                   std::to_string(shape.quantiles));
      const auto theta = MakeArray<TypeParam>(family, shape, random);
      const auto next = MakeArray<TypeParam>(family, shape, random);
      const double reward = random.Normal();
      const double discount = random.Bernoulli(0.2) ? 0 : 0.99;
      const Uncertainty u =
          DecomposeTargetQuantiles<TypeParam>(theta, next, shape, reward, discount);
      ExpectNonNegative(u);
      const auto total_delta =
          static_cast<double>(NaivePairs(theta, next, shape, reward, discount));
      // reward + discount * mean - mean is good to a rounding of the means.
      const double tolerance =
          1e-12 * total_delta + 1e-14 * (std::abs(u.mean) + 1) * std::sqrt(total_delta);
      EXPECT_NEAR(u.total_delta, total_delta, tolerance);
      const Naive naive = NaiveDecomposition(theta, shape);
      EXPECT_NEAR(u.epistemic_delta, total_delta - static_cast<double>(naive.aleatoric), tolerance);
      ExpectRelative(u.epistemic, naive.epistemic, 1e-12, "E");
      ExpectRelative(u.aleatoric, naive.aleatoric, 1e-12, "A");
      const long double gap =
          reward + static_cast<long double>(discount) * NaiveDecomposition(next, shape).mean -
          naive.mean;
      EXPECT_NEAR(u.target_distance_sq, static_cast<double>(gap * gap), tolerance);
      EXPECT_LE(u.target_distance_sq, u.epistemic_delta * (1 + 1e-12));
    }
  }
}

TYPED_TEST(UncertaintyTest, CommonShiftChangesNothing) {
  // Integers and a shift of 2^20: every operation is exact or rounds the same way in float.
  RandomStream random(6, "uncertainty");
  const EnsembleShape shape = {5, 9};
  Array<TypeParam> theta(45);
  Array<TypeParam> shifted(45);
  for (std::size_t i = 0; i < theta.size(); ++i) {
    theta[i] = static_cast<TypeParam>(random.UniformInt(100));
    shifted[i] = theta[i] + static_cast<TypeParam>(1 << 20);
  }
  const Uncertainty u = DecomposeScalarTarget<TypeParam>(theta, shape, 3);
  const Uncertainty v = DecomposeScalarTarget<TypeParam>(shifted, shape, 3 + (1 << 20));
  EXPECT_EQ(u.epistemic, v.epistemic);
  EXPECT_EQ(u.aleatoric, v.aleatoric);
  EXPECT_NEAR(u.target_distance_sq, v.target_distance_sq, 1e-9 * (1 + u.target_distance_sq));
}

TYPED_TEST(UncertaintyTest, EveryArgumentMatters) {
  const Array<TypeParam> theta = {0, 2, 2, 4};
  const Array<TypeParam> next = {2, 6, 4, 4};
  const Array<TypeParam> other_next = {2, 6, 4, 5};
  const auto e_delta = [&](const Array<TypeParam>& target, double reward, double discount) {
    return DecomposeTargetQuantiles<TypeParam>(theta, target, {2, 2}, reward, discount)
        .epistemic_delta;
  };
  EXPECT_NE(e_delta(next, 1, 0.5), e_delta(next, 2, 0.5));
  EXPECT_NE(e_delta(next, 1, 0.5), e_delta(next, 1, 0.25));
  EXPECT_NE(e_delta(next, 1, 0.5), e_delta(other_next, 1, 0.5));
  // At a terminal step the successor's distribution has no influence.
  EXPECT_EQ(e_delta(next, 1, 0), e_delta(other_next, 1, 0));
}

}  // namespace
}  // namespace uper
