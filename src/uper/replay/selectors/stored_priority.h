#pragma once

#include <limits>
#include <optional>

#include "uper/core/host_device.h"

namespace uper {

// Bounds of a positive raw priority as it is stored. No denormals: a thread that flushes them to
// zero would see other masses than one that does not. With exponents up to 4 the masses of all
// positive priorities lie within 1e-152..1e155, so no sum of 2^32 of them leaves double's range.
inline constexpr float kSmallestPriority = std::numeric_limits<float>::min();
inline constexpr float kLargestPriority = std::numeric_limits<float>::max();

// Is this a priority as the memory keeps it: 0, or inside the bounds above?
inline bool IsStoredPriority(float priority) {
  return priority == 0 || (priority >= kSmallestPriority && priority <= kLargestPriority);
}

// The gate every priority passes, on the host and on the GPU: false for what is NaN, infinite,
// negative or beyond float's range. A positive priority stays positive however small it is; -0
// becomes 0.
UPER_HOST_DEVICE inline bool StorePriority(double priority, float& stored) {
  if (!(priority >= 0 && priority <= static_cast<double>(kLargestPriority))) return false;
  const float rounded = static_cast<float>(priority);
  stored = priority == 0 ? 0.0F : (rounded < kSmallestPriority ? kSmallestPriority : rounded);
  return true;
}
inline std::optional<float> ToStoredPriority(double priority) {
  float stored;
  return StorePriority(priority, stored) ? std::optional(stored) : std::nullopt;
}

}  // namespace uper
