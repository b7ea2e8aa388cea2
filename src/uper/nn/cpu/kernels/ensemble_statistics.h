#pragma once

#include <span>

#include "uper/core/uncertainty.h"

namespace uper::cpu {

// The decompositions of core/uncertainty.h for training, vectorized over the quantiles. They take
// the means of the members, which the TD error needs anyway. Sums are double, in eight partial sums
// (element i in sum i % 8) that are added as a fixed tree: the same bits on every instruction set.
// Equal members give E = 0 exactly, equal quantiles A = 0.

// means[k] = mean of values [member, quantile] over the quantiles.
void QuantileMeans(std::span<const float> values, EnsembleShape shape, std::span<double> means);

// As DecomposeTargetQuantiles(). theta_means and target_means come from QuantileMeans(); `columns`
// is scratch memory for `quantiles` doubles.
Uncertainty DecomposeTargetQuantilesSimd(std::span<const float> theta,
                                         std::span<const float> target_theta, EnsembleShape shape,
                                         double reward, double discount,
                                         std::span<const double> theta_means,
                                         std::span<const double> target_means,
                                         std::span<double> columns);

// As DecomposeScalarTarget().
Uncertainty DecomposeScalarTargetSimd(std::span<const float> theta, EnsembleShape shape,
                                      double target, std::span<double> columns);

}  // namespace uper::cpu
