#pragma once

#include <cstddef>
#include <span>

namespace uper::cpu {

// The quantile Huber loss of core/quantile.h for the training path, float and vectorised over the
// online quantiles: over all pairs, each quantile's sum in the targets' order, so that the result
// does not depend on the vector width. gradient[i] = d loss / d theta_i; returns the loss.
// REQUIRES: as core's; gradient does not overlap the inputs.
double QuantileHuberSimd(std::span<const float> theta, std::span<const float> targets, float kappa,
                         std::span<float> gradient);

}  // namespace uper::cpu
