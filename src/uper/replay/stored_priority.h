#pragma once

#include <algorithm>
#include <limits>
#include <optional>

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

// The gate every priority passes: what is NaN, infinite, negative or beyond float's range gives
// nothing. A positive priority stays positive however small it is; -0 becomes 0.
inline std::optional<float> ToStoredPriority(double priority) {
  if (!(priority >= 0 && priority <= double{kLargestPriority})) return std::nullopt;
  if (priority == 0) return 0.0F;
  return std::max(static_cast<float>(priority), kSmallestPriority);
}

}  // namespace uper
