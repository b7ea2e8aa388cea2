#pragma once

#include <span>

#include "uper/core/uncertainty.h"

namespace uper {

// The decompositions of core/uncertainty.h, vectorized over the quantiles for AVX-512, AVX2 and any
// other machine. The first call chooses the best version. Sums are double, in eight partial sums
// (element i in sum i % 8) that are added as a fixed tree: the same bits on every instruction set.
// Equal members give E = 0 exactly, equal quantiles A = 0. A common offset costs no accuracy.
// Instantiated for float and double. Arrays of Real may have any address, aligned or not.

// means[k] = mean of values [member, quantile] over the quantiles.
template <typename Real>
void QuantileMeans(std::span<const Real> values, EnsembleShape shape, std::span<double> means);

// As DecomposeTargetQuantiles(). theta_means and target_means come from QuantileMeans(); `columns`
// is scratch memory for `quantiles` doubles.
template <typename Real>
Uncertainty DecomposeTargetQuantilesSimd(std::span<const Real> theta,
                                         std::span<const Real> target_theta, EnsembleShape shape,
                                         double reward, double discount,
                                         std::span<const double> theta_means,
                                         std::span<const double> target_means,
                                         std::span<double> columns);

// As DecomposeScalarTarget().
template <typename Real>
Uncertainty DecomposeScalarTargetSimd(std::span<const Real> theta, EnsembleShape shape,
                                      double target, std::span<double> columns);

// out[b] is the decomposition of sample b: the same bits as from the functions above. theta and
// target_theta are [samples, members, quantiles], the others [samples]. Allocates one row of
// `quantiles` doubles.
template <typename Real>
void DecomposeTargetQuantilesBatch(std::span<const Real> theta, std::span<const Real> target_theta,
                                   EnsembleShape shape, std::span<const double> rewards,
                                   std::span<const double> discounts, std::span<Uncertainty> out);
template <typename Real>
void DecomposeScalarTargetBatch(std::span<const Real> theta, EnsembleShape shape,
                                std::span<const double> targets, std::span<Uncertainty> out);

// The functions above for one instruction set, without checks.
template <typename Real>
struct EnsembleKernels {
  const char* instructions;  // "AVX-512", "AVX2" or "portable"
  void (*quantile_means)(const Real* values, EnsembleShape shape, double* means);
  // Computes mean, epistemic, aleatoric and total.
  Uncertainty (*decompose)(const Real* theta, EnsembleShape shape, double* columns);
  // Computes all fields. Means that are null are computed, too.
  Uncertainty (*decompose_target)(const Real* theta, const Real* target_theta, EnsembleShape shape,
                                  double reward, double discount, const double* theta_means,
                                  const double* target_means, double* columns);
};

// For tests: what this machine can run, best first. The functions above use the first.
template <typename Real>
std::span<const EnsembleKernels<Real>> RunnableEnsembleKernels();

}  // namespace uper
