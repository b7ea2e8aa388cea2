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

// C51's projection of reward + discount * Z back onto the atoms, Z having `probabilities`:
// each shifted atom is clipped to [low, high] and shares its mass with its two neighbours in
// proportion to closeness (all of it where it falls on an atom). Mass is conserved.
// Instantiated for float and double. REQUIRES: both spans have support.atoms entries and do not
// overlap; reward and discount are finite.
template <typename Real>
void ProjectCategorical(const AtomSupport& support, std::span<const Real> probabilities,
                        double reward, double discount, std::span<Real> projected);

// The values of the distribution's quantile function at the midpoints tau_i = (2 i + 1) / (2 m),
// by linear interpolation of its cumulative distribution between atoms: how a categorical member
// enters the quantile formulas of uncertainty.h. Left of the first positive mass the result is the
// first atom with mass. What the sum of the probabilities lacks to 1, or exceeds it by, is divided
// out. Instantiated for float and double.
// REQUIRES: probabilities.size() == support.atoms, none negative, their sum is about 1.
template <typename Real>
void CategoricalQuantiles(const AtomSupport& support, std::span<const Real> probabilities,
                          std::span<Real> quantiles);

// Uncertainty of an ensemble of categorical distributions p[member, atom] on common atoms z, for a
// scalar target. In both functions Q = mean_k Q_k with Q_k = sum_j p_kj z_j, E_delta = (target -
// Q)^2 + E and U = E + A; they differ in E and A. The default, E and A of the members' quantiles,
// is CategoricalQuantiles and then DecomposeScalarTarget. Allocate nothing; float and double.
// REQUIRES: probabilities.size() is members * support.atoms, members >= 1; each row's sum is
// positive.

// The law of total variance: E = V_k[Q_k], A = mean_k V_{z ~ p_k}[z]. U is the variance of the
// averaged distribution. Rows are normalised by their sums.
template <typename Real>
Uncertainty DecomposeCategoricalVariance(const AtomSupport& support,
                                         std::span<const Real> probabilities, std::size_t members,
                                         double target);

// The form in the authors' code: v_kj = p_kj z_j in the place of quantiles, E = mean_j V_k[v_kj],
// A = V_j[mean_k v_kj]. Not a variance of the return (a certain return of 10 has A > 0); only to
// compare with the authors' curves.
template <typename Real>
Uncertainty DecomposeCategoricalProducts(const AtomSupport& support,
                                         std::span<const Real> probabilities, std::size_t members,
                                         double target);

}  // namespace uper
