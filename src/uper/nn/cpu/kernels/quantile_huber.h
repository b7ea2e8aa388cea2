#pragma once

#include <cstddef>
#include <span>

namespace uper::cpu {

// The quantile Huber loss of core/quantile.h for training, in float and vectorized over the online
// quantiles. It adds all pairs. The sum of each quantile follows the order of the targets, so the
// result does not depend on the vector width. Sets gradient[i] = d loss / d theta_i and returns the
// loss. REQUIRES: as in core/quantile.h, and gradient does not overlap the inputs.
double QuantileHuberSimd(std::span<const float> theta, std::span<const float> targets, float kappa,
                         std::span<float> gradient);

}  // namespace uper::cpu
