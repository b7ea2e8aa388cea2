#include "uper/core/categorical.h"

#include <algorithm>
#include <cmath>

#include "uper/base/check.h"
#include "uper/core/moments.h"
#include "uper/core/quantile.h"

namespace uper {
namespace {

void CheckSupport(const AtomSupport& support) {
  UPER_CHECK(support.atoms >= 2 && support.high > support.low, "two atoms or more, in order");
}

template <typename Real>
void CheckEnsemble(const AtomSupport& support, std::span<const Real> probabilities,
                   std::size_t members) {
  CheckSupport(support);
  UPER_CHECK(members >= 1 && probabilities.size() == members * support.atoms,
             "probabilities must be [members, atoms]");
}

// Q_k and V_{z ~ p_k}[z] of one member.
template <typename Real>
Moments DistributionMoments(const AtomSupport& support, std::span<const Real> probabilities) {
  double mass = 0;
  double first = 0;
  for (std::size_t j = 0; j < support.atoms; ++j) {
    mass += static_cast<double>(probabilities[j]);
    first += static_cast<double>(probabilities[j]) * support.Atom(j);
  }
  const double mean = first / mass;
  double squares = 0;
  for (std::size_t j = 0; j < support.atoms; ++j) {
    const double deviation = support.Atom(j) - mean;
    squares += static_cast<double>(probabilities[j]) * deviation * deviation;
  }
  return {.mean = mean, .variance = squares / mass};
}

}  // namespace

template <typename Real>
void ProjectCategorical(const AtomSupport& support, std::span<const Real> probabilities,
                        double reward, double discount, std::span<Real> projected) {
  CheckSupport(support);
  UPER_CHECK(probabilities.size() == support.atoms && projected.size() == support.atoms,
             "one probability per atom");
  UPER_CHECK(std::isfinite(reward) && std::isfinite(discount), "reward and discount are finite");
  std::fill(projected.begin(), projected.end(), Real{0});
  const double last = static_cast<double>(support.atoms - 1);
  for (std::size_t j = 0; j < support.atoms; ++j) {
    const double z = std::clamp(reward + discount * support.Atom(j), support.low, support.high);
    const double position = std::min((z - support.low) / support.spacing(), last);
    const auto lower = static_cast<std::size_t>(position);
    const double upper_share = position - static_cast<double>(lower);
    const double mass = static_cast<double>(probabilities[j]);
    projected[lower] += static_cast<Real>(mass * (1 - upper_share));
    if (upper_share > 0) projected[lower + 1] += static_cast<Real>(mass * upper_share);
  }
}

template <typename Real>
void CategoricalQuantiles(const AtomSupport& support, std::span<const Real> probabilities,
                          std::span<Real> quantiles) {
  CheckSupport(support);
  UPER_CHECK(probabilities.size() == support.atoms, "one probability per atom");
  double mass = 0;
  for (const Real probability : probabilities) mass += static_cast<double>(probability);
  // The cumulative probability is `below` at atom j - 1 and `upto` at atom j.
  std::size_t j = 0;
  double below = 0;
  double upto = static_cast<double>(probabilities[0]);
  for (std::size_t i = 0; i < quantiles.size(); ++i) {
    const double tau = QuantileMidpoint(i, quantiles.size()) * mass;
    while (upto < tau && j + 1 < support.atoms) {
      ++j;
      below = upto;
      upto += static_cast<double>(probabilities[j]);
    }
    const double share = below > 0 ? (tau - below) / (upto - below) : 1;
    quantiles[i] =
        static_cast<Real>(support.Atom(j) - support.spacing() * (1 - std::min(share, 1.0)));
  }
}

template <typename Real>
Uncertainty DecomposeCategoricalVariance(const AtomSupport& support,
                                         std::span<const Real> probabilities, std::size_t members,
                                         double target) {
  CheckEnsemble(support, probabilities, members);
  RunningMoments means;
  double variances = 0;
  for (std::size_t k = 0; k < members; ++k) {
    const Moments member =
        DistributionMoments(support, probabilities.subspan(k * support.atoms, support.atoms));
    means.Add(member.mean);
    variances += member.variance;
  }
  return WithTarget(means.mean, means.variance(), variances / static_cast<double>(members), target);
}

template <typename Real>
Uncertainty DecomposeCategoricalProducts(const AtomSupport& support,
                                         std::span<const Real> probabilities, std::size_t members,
                                         double target) {
  CheckEnsemble(support, probabilities, members);
  RunningMoments products;  // over atoms, of mean_k v_kj
  double variances = 0;     // sum over atoms of V_k[v_kj]
  for (std::size_t j = 0; j < support.atoms; ++j) {
    RunningMoments across;
    for (std::size_t k = 0; k < members; ++k) {
      across.Add(static_cast<double>(probabilities[k * support.atoms + j]) * support.Atom(j));
    }
    variances += across.variance();
    products.Add(across.mean);
  }
  const double atoms = static_cast<double>(support.atoms);
  return WithTarget(products.mean * atoms, variances / atoms, products.variance(), target);
}

template void ProjectCategorical(const AtomSupport&, std::span<const float>, double, double,
                                 std::span<float>);
template void ProjectCategorical(const AtomSupport&, std::span<const double>, double, double,
                                 std::span<double>);
template void CategoricalQuantiles(const AtomSupport&, std::span<const float>, std::span<float>);
template void CategoricalQuantiles(const AtomSupport&, std::span<const double>, std::span<double>);
template Uncertainty DecomposeCategoricalVariance(const AtomSupport&, std::span<const float>,
                                                  std::size_t, double);
template Uncertainty DecomposeCategoricalVariance(const AtomSupport&, std::span<const double>,
                                                  std::size_t, double);
template Uncertainty DecomposeCategoricalProducts(const AtomSupport&, std::span<const float>,
                                                  std::size_t, double);
template Uncertainty DecomposeCategoricalProducts(const AtomSupport&, std::span<const double>,
                                                  std::size_t, double);

}  // namespace uper
