#pragma once

#include <span>

#include "uper/core/uncertainty.h"

namespace uper::cpu {

// The decompositions of core/uncertainty.h for the training path: vectorised over the quantiles and
// fed with the members' means, which the TD error needs anyway. Sums are double, in eight partial
// sums (element i in sum i % 8) that are added as a fixed tree: the same bits on every instruction
// set. Equal members give E = 0 exactly, equal quantiles A = 0.

// means[k] = mean of values [member, quantile] over the quantiles.
void QuantileMeans(std::span<const float> values, EnsembleShape shape, std::span<double> means);

// DecomposeTargetQuantiles(), with theta_means and target_means from QuantileMeans(); `columns`
// holds `quantiles` doubles of scratch.
Uncertainty DecomposeTargetQuantilesSimd(std::span<const float> theta,
                                         std::span<const float> target_theta, EnsembleShape shape,
                                         double reward, double discount,
                                         std::span<const double> theta_means,
                                         std::span<const double> target_means,
                                         std::span<double> columns);

// DecomposeScalarTarget().
Uncertainty DecomposeScalarTargetSimd(std::span<const float> theta, EnsembleShape shape,
                                      double target, std::span<double> columns);

}  // namespace uper::cpu
