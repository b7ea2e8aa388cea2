#include "uper/core/categorical.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "uper/base/error.h"
#include "uper/base/random.h"
#include "uper/core/quantile.h"

namespace uper {
namespace {

constexpr AtomSupport kThree = {.low = 0, .high = 2, .atoms = 3};  // atoms 0, 1, 2

template <typename Real>
std::vector<Real> Project(const AtomSupport& support, const std::vector<Real>& p, double reward,
                          double discount) {
  std::vector<Real> projected(support.atoms, Real{77});
  ProjectCategorical<Real>(support, p, reward, discount, projected);
  return projected;
}

template <typename Real>
std::vector<Real> Quantiles(const AtomSupport& support, const std::vector<Real>& p,
                            std::size_t count) {
  std::vector<Real> quantiles(count, Real{77});
  CategoricalQuantiles<Real>(support, p, quantiles);
  return quantiles;
}

template <typename Real>
std::vector<Real> RandomDistribution(std::size_t atoms, RandomStream& random) {
  std::vector<double> p(atoms);
  for (double& x : p) x = random.Bernoulli(0.3) ? 0 : random.Uniform();
  p[random.UniformInt(atoms)] += 0.1;
  const double sum = std::accumulate(p.begin(), p.end(), 0.0);
  std::vector<Real> result;
  for (const double x : p) result.push_back(static_cast<Real>(x / sum));
  return result;
}

// The sum over all pairs of target and source atoms: sum_j p_j max(0, 1 - |z'_j - z_i| / spacing).
template <typename Real>
std::vector<double> NaiveProjection(const AtomSupport& support, const std::vector<Real>& p,
                                    double reward, double discount) {
  std::vector<double> projected(support.atoms, 0.0);
  for (std::size_t i = 0; i < support.atoms; ++i) {
    for (std::size_t j = 0; j < support.atoms; ++j) {
      const double z = std::clamp(reward + discount * support.Atom(j), support.low, support.high);
      const double closeness = 1 - std::abs(z - support.Atom(i)) / support.spacing();
      projected[i] += static_cast<double>(p[j]) * std::max(0.0, closeness);
    }
  }
  return projected;
}

TEST(AtomSupportTest, HandValues) {
  const AtomSupport c51;
  EXPECT_DOUBLE_EQ(c51.spacing(), 0.4);
  EXPECT_EQ(c51.Atom(0), -10);
  EXPECT_DOUBLE_EQ(c51.Atom(25), 0);
  EXPECT_DOUBLE_EQ(c51.Atom(50), 10);
}

template <typename Real>
class CategoricalTest : public testing::Test {
 public:
  static constexpr double kTolerance = sizeof(Real) == 8 ? 1e-14 : 1e-6;
};
using Reals = testing::Types<float, double>;
TYPED_TEST_SUITE(CategoricalTest, Reals);

TYPED_TEST(CategoricalTest, ProjectionHandValues) {
  // 0.5 halfway between 0 and 1; 1.5 between 1 and 2; 2.5 clipped to 2.
  const std::vector<TypeParam> p = {TypeParam(0.2), TypeParam(0.3), TypeParam(0.5)};
  const auto shifted = Project(kThree, p, 0.5, 1);
  EXPECT_NEAR(shifted[0], 0.1, this->kTolerance);
  EXPECT_NEAR(shifted[1], 0.25, this->kTolerance);
  EXPECT_NEAR(shifted[2], 0.65, this->kTolerance);
  // Discount 1/4: 0, 0.25, 0.5: 0.2 + 0.3 * 0.75 + 0.5 * 0.5 at 0, the rest at 1.
  const auto shrunk = Project(kThree, p, 0, 0.25);
  EXPECT_NEAR(shrunk[0], 0.675, this->kTolerance);
  EXPECT_NEAR(shrunk[1], 0.325, this->kTolerance);
  EXPECT_EQ(shrunk[2], 0);
}

TYPED_TEST(CategoricalTest, ProjectionOntoAtomsIsExact) {
  const std::vector<TypeParam> p = {TypeParam(0.2), TypeParam(0.3), TypeParam(0.5)};
  EXPECT_EQ(Project(kThree, p, 0, 1), p);
  const std::vector<TypeParam> moved = {0, TypeParam(0.2), TypeParam(0.3) + TypeParam(0.5)};
  EXPECT_EQ(Project(kThree, p, 1, 1), moved);
  // Terminal with reward 1: everything at atom 1, up to the rounding of the sum.
  const auto terminal = Project(kThree, p, 1, 0);
  EXPECT_EQ(terminal[0], 0);
  EXPECT_NEAR(terminal[1], 1, this->kTolerance);
  EXPECT_EQ(terminal[2], 0);
}

TYPED_TEST(CategoricalTest, ProjectionClipsAtBothEnds) {
  const std::vector<TypeParam> p = {TypeParam(0.25), TypeParam(0.25), TypeParam(0.5)};
  EXPECT_EQ(Project(kThree, p, 100, 1), (std::vector<TypeParam>{0, 0, 1}));
  EXPECT_EQ(Project(kThree, p, -100, 1), (std::vector<TypeParam>{1, 0, 0}));
  EXPECT_EQ(Project(kThree, p, 1e308, 1e308), (std::vector<TypeParam>{0, 0, 1}));
}

TYPED_TEST(CategoricalTest, ProjectionEqualsTheNaiveOneAndConservesMass) {
  RandomStream random(1, "categorical");
  const std::vector<AtomSupport> supports = {
      {}, {.low = -1, .high = 0.3, .atoms = 2}, {.low = 0.1, .high = 0.7, .atoms = 7}};
  for (const AtomSupport& support : supports) {
    for (int trial = 0; trial < 300; ++trial) {
      const auto p = RandomDistribution<TypeParam>(support.atoms, random);
      // A third of the rewards moves atoms onto atoms, up to rounding.
      const double reward = trial % 3 == 0
                                ? support.spacing() * static_cast<double>(random.UniformInt(9))
                                : 5 * random.Normal();
      const double discount = trial % 5 == 0 ? 0 : (trial % 3 == 0 ? 1 : random.Uniform());
      const auto projected = Project(support, p, reward, discount);
      const auto expected = NaiveProjection(support, p, reward, discount);
      double mass = 0;
      for (std::size_t i = 0; i < support.atoms; ++i) {
        EXPECT_NEAR(projected[i], expected[i], 10 * this->kTolerance);
        EXPECT_GE(projected[i], 0);
        mass += static_cast<double>(projected[i]);
      }
      const double before = std::accumulate(p.begin(), p.end(), 0.0);
      EXPECT_NEAR(mass, before, 10 * this->kTolerance);
    }
  }
}

TYPED_TEST(CategoricalTest, ProjectionContractsAreChecked) {
  const std::vector<TypeParam> p(3, TypeParam(0.25));
  const std::vector<TypeParam> two(2, TypeParam(0.5));
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THROW(Project(kThree, two, 0, 1), Error);
  EXPECT_THROW(Project(kThree, p, nan, 1), Error);
  EXPECT_THROW(Project(kThree, p, 0, nan), Error);
  EXPECT_THROW(Project(AtomSupport{.low = 1, .high = 1, .atoms = 3}, p, 0, 1), Error);
  EXPECT_THROW(Project<TypeParam>(AtomSupport{.low = 0, .high = 1, .atoms = 1}, {1}, 0, 1), Error);
}

TYPED_TEST(CategoricalTest, QuantilesHandValues) {
  // Cumulative 0.25, 0.5, 1; tau = 1/8, 3/8, 5/8, 7/8. 1/8 is left of all interpolation: atom 0;
  // 3/8: halfway from 0 to 1; 5/8: a quarter from 1 to 2; 7/8: three quarters.
  const std::vector<TypeParam> p = {TypeParam(0.25), TypeParam(0.25), TypeParam(0.5)};
  EXPECT_EQ(Quantiles(kThree, p, 4),
            (std::vector<TypeParam>{0, TypeParam(0.5), TypeParam(1.25), TypeParam(1.75)}));
  // No mass at atom 1: the line to atom 2 starts there, at cumulative 0.5.
  const std::vector<TypeParam> gap = {TypeParam(0.5), 0, TypeParam(0.5)};
  EXPECT_EQ(Quantiles(kThree, gap, 4),
            (std::vector<TypeParam>{0, 0, TypeParam(1.25), TypeParam(1.75)}));
}

TYPED_TEST(CategoricalTest, QuantilesOfACertainReturnAreThatReturn) {
  for (std::size_t j = 0; j < 3; ++j) {
    std::vector<TypeParam> p(3, TypeParam(0));
    p[j] = 1;
    for (const TypeParam q : Quantiles(kThree, p, 5)) EXPECT_EQ(q, static_cast<TypeParam>(j));
  }
}

TYPED_TEST(CategoricalTest, QuantilesRiseStayInsideAndInvertTheCumulative) {
  RandomStream random(2, "categorical");
  const AtomSupport support;
  for (int trial = 0; trial < 100; ++trial) {
    const auto p = RandomDistribution<TypeParam>(support.atoms, random);
    const auto quantiles = Quantiles(support, p, 51);
    EXPECT_TRUE(std::is_sorted(quantiles.begin(), quantiles.end()));
    EXPECT_GE(quantiles.front(), static_cast<TypeParam>(support.low));
    EXPECT_LE(quantiles.back(), static_cast<TypeParam>(support.high));
    const auto first = static_cast<std::size_t>(
        std::find_if(p.begin(), p.end(), [](TypeParam x) { return x > 0; }) - p.begin());
    for (std::size_t i = 0; i < 51; ++i) {
      // Cumulative distribution at the quantile, linear between atoms.
      double cumulative = 0;
      for (std::size_t j = 0; j < support.atoms; ++j) {
        const double left = support.Atom(j) - support.spacing();
        const double part = (static_cast<double>(quantiles[i]) - left) / support.spacing();
        cumulative += static_cast<double>(p[j]) * std::clamp(part, 0.0, 1.0);
      }
      const double tau = QuantileMidpoint(i, 51);
      // In float a quantile is good to 10 * 6e-8, which the steepest step multiplies by p / 0.4.
      if (tau > static_cast<double>(p[first]) + 1e-5) {
        EXPECT_NEAR(cumulative, tau, sizeof(TypeParam) == 8 ? 1e-12 : 3e-6);
      } else if (tau < static_cast<double>(p[first]) - 1e-5) {
        EXPECT_NEAR(quantiles[i], support.Atom(first), 1e-6);
      }
    }
  }
}

TYPED_TEST(CategoricalTest, QuantilesDivideOutAWrongSum) {
  const std::vector<TypeParam> p = {TypeParam(0.5), TypeParam(0.5), 1};
  EXPECT_EQ(Quantiles(kThree, p, 4),
            (std::vector<TypeParam>{0, TypeParam(0.5), TypeParam(1.25), TypeParam(1.75)}));
}

TYPED_TEST(CategoricalTest, TotalVarianceHandValues) {
  // Member 0: atoms 0 and 2 with 1/2 each: Q = 1, variance 1. Member 1: certainly 2. Target 3.
  // Q = 1.5, E = 0.25, A = 0.5; the average (1/4, 0, 3/4): variance 3 - 2.25 = 0.75.
  const std::vector<TypeParam> p = {TypeParam(0.5), 0, TypeParam(0.5), 0, 0, 1};
  const Uncertainty u = DecomposeCategoricalVariance<TypeParam>(kThree, p, 2, 3);
  EXPECT_DOUBLE_EQ(u.mean, 1.5);
  EXPECT_DOUBLE_EQ(u.epistemic, 0.25);
  EXPECT_DOUBLE_EQ(u.aleatoric, 0.5);
  EXPECT_DOUBLE_EQ(u.total, 0.75);
  EXPECT_DOUBLE_EQ(u.target_distance_sq, 2.25);
  EXPECT_DOUBLE_EQ(u.epistemic_delta, 2.5);
  EXPECT_DOUBLE_EQ(u.total_delta, 3);
}

TYPED_TEST(CategoricalTest, TotalVarianceIsThatOfTheAveragedDistribution) {
  RandomStream random(3, "categorical");
  const AtomSupport support;
  const std::size_t members = 10;
  std::vector<TypeParam> all;
  std::vector<double> average(support.atoms, 0.0);
  for (std::size_t k = 0; k < members; ++k) {
    const auto p = RandomDistribution<TypeParam>(support.atoms, random);
    const double sum = std::accumulate(p.begin(), p.end(), 0.0);
    for (std::size_t j = 0; j < support.atoms; ++j) average[j] += p[j] / sum / members;
    all.insert(all.end(), p.begin(), p.end());
  }
  double mean = 0;
  double square = 0;
  for (std::size_t j = 0; j < support.atoms; ++j) {
    mean += average[j] * support.Atom(j);
    square += average[j] * support.Atom(j) * support.Atom(j);
  }
  const Uncertainty u = DecomposeCategoricalVariance<TypeParam>(support, all, members, 0);
  EXPECT_NEAR(u.mean, mean, 1e-13);
  EXPECT_NEAR(u.total, square - mean * mean, 1e-12);
  EXPECT_GT(u.epistemic, 0);
  EXPECT_GT(u.aleatoric, 0);
}

TYPED_TEST(CategoricalTest, ProductsOfACertainReturnHaveASpread) {
  // v is 10 at one of 51 atoms, else 0: 100/51 - (10/51)^2 = 1.922337562475971; Q = 10.
  const AtomSupport support;
  std::vector<TypeParam> p(51, TypeParam(0));
  p[50] = 1;
  const Uncertainty ten = DecomposeCategoricalProducts<TypeParam>(support, p, 1, 9);
  EXPECT_NEAR(ten.mean, 10, 1e-13);
  EXPECT_NEAR(ten.aleatoric, 1.922337562475971, 1e-13);
  EXPECT_EQ(ten.epistemic, 0);
  EXPECT_NEAR(ten.epistemic_delta, 1, 1e-12);
  EXPECT_NEAR(DecomposeCategoricalVariance<TypeParam>(support, p, 1, 9).aleatoric, 0, 1e-13);
}

TYPED_TEST(CategoricalTest, ProductsEqualTheQuantileFormulasOnProducts) {
  RandomStream random(4, "categorical");
  const AtomSupport support;
  const std::size_t members = 6;
  std::vector<TypeParam> all;
  std::vector<double> products;
  for (std::size_t k = 0; k < members; ++k) {
    const auto p = RandomDistribution<TypeParam>(support.atoms, random);
    all.insert(all.end(), p.begin(), p.end());
    for (std::size_t j = 0; j < support.atoms; ++j) {
      products.push_back(static_cast<double>(p[j]) * support.Atom(j));
    }
  }
  const Uncertainty expected = DecomposeScalarTarget<double>(products, {members, support.atoms}, 0);
  const Uncertainty u = DecomposeCategoricalProducts<TypeParam>(support, all, members, 0);
  EXPECT_NEAR(u.epistemic, expected.epistemic, 1e-14);
  EXPECT_NEAR(u.aleatoric, expected.aleatoric, 1e-14);
  EXPECT_NEAR(u.mean, expected.mean * 51, 1e-13);  // the sum over atoms, not their average
}

TYPED_TEST(CategoricalTest, EnsembleShapesAreChecked) {
  const std::vector<TypeParam> p(6, TypeParam(0.5));
  EXPECT_THROW(DecomposeCategoricalVariance<TypeParam>(kThree, p, 3, 0), Error);
  EXPECT_THROW(DecomposeCategoricalProducts<TypeParam>(kThree, p, 1, 0), Error);
  EXPECT_THROW(DecomposeCategoricalVariance<TypeParam>(kThree, {}, 0, 0), Error);
}

}  // namespace
}  // namespace uper
