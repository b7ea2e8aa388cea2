#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "uper/core/host_device.h"

namespace uper {

// The arithmetic that turns priorities into probabilities, for the selectors of the host and of the
// GPU (selector.h has the definition).

// priority^exponent, 0 for priority 0 (also with exponent 0).
UPER_HOST_DEVICE inline double PriorityMass(float priority, double exponent) {
  if (priority == 0) return 0;
  if (exponent == 0) return 1;
  if (exponent == 1) return priority;
  return std::pow(static_cast<double>(priority), exponent);
}

// The probability of one draw when a share `mix` of the draws is uniform.
UPER_HOST_DEVICE inline double MixedProbability(double mass, double total, double mix,
                                                std::size_t size) {
  const double p = (1 - mix) * (mass / total) + mix / static_cast<double>(size);
  return p < 1 ? p : 1.0;
}

// The age rank at a fraction in [0, 1] of `size` items.
UPER_HOST_DEVICE inline std::size_t UniformRank(double fraction, std::size_t size) {
  const auto rank = static_cast<std::size_t>(fraction * static_cast<double>(size));
  return rank < size ? rank : size - 1;
}

}  // namespace uper
