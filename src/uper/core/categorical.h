#pragma once

#include <cstddef>
#include <span>

#include "uper/core/uncertainty.h"

namespace uper {

// Evenly spaced atoms z_0..z_{n-1} of a categorical (C51) distribution.
struct AtomSupport {
  double low = -10;        // z_0
  double high = 10;        // z_{n-1} > low
  std::size_t atoms = 51;  // n >= 2

  double spacing() const { return (high - low) / static_cast<double>(atoms - 1); }
  double Atom(std::size_t i) const { return low + spacing() * static_cast<double>(i); }
};

// C51's projection of reward + discount * Z back onto the atoms, where Z has `probabilities`. Each
// shifted atom is clipped to [low, high]. Its mass is split between its two neighbors in proportion
// to closeness. An atom that falls on another gives it all its mass. Mass is conserved.
// Instantiated for float and double. REQUIRES: both spans have support.atoms entries and do not
// overlap; reward and discount are finite.
template <typename Real>
void ProjectCategorical(const AtomSupport& support, std::span<const Real> probabilities,
                        double reward, double discount, std::span<Real> projected);

// The values of the distribution's quantile function at the midpoints tau_i = (2 i + 1) / (2 m).
// The cumulative distribution is interpolated linearly between atoms. With these values a
// categorical member enters the quantile formulas of uncertainty.h. Left of the first positive mass
// the result is the first atom with mass. The probabilities are divided by their sum. Instantiated
// for float and double. REQUIRES: probabilities.size() == support.atoms, none negative, their sum
// is about 1.
template <typename Real>
void CategoricalQuantiles(const AtomSupport& support, std::span<const Real> probabilities,
                          std::span<Real> quantiles);

// Uncertainty of an ensemble of categorical distributions p[member, atom] on common atoms z, for a
// scalar target. In both functions Q = mean_k Q_k with Q_k = sum_j p_kj z_j, E_delta = (target -
// Q)^2 + E and U = E + A. They differ in E and A. The agents' default uses neither function: it
// calls CategoricalQuantiles and then DecomposeScalarTarget. Both allocate nothing and are
// instantiated for float and double.
// REQUIRES: probabilities.size() is members * support.atoms, members >= 1; each row's sum is
// positive.

// The law of total variance: E = V_k[Q_k], A = mean_k V_{z ~ p_k}[z]. U is the variance of the
// averaged distribution. Rows are normalized by their sums.
template <typename Real>
Uncertainty DecomposeCategoricalVariance(const AtomSupport& support,
                                         std::span<const Real> probabilities, std::size_t members,
                                         double target);

// The form in the authors' code: v_kj = p_kj z_j replaces the quantiles, E = mean_j V_k[v_kj],
// A = V_j[mean_k v_kj]. A is not a variance of the return: a certain return of 10 has A > 0. Use it
// only to compare with the authors' curves.
template <typename Real>
Uncertainty DecomposeCategoricalProducts(const AtomSupport& support,
                                         std::span<const Real> probabilities, std::size_t members,
                                         double target);

}  // namespace uper
