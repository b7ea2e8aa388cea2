#pragma once

#include <limits>
#include <optional>

#include "uper/core/host_device.h"

namespace uper {

// Bounds of a positive raw priority in the memory. Denormals are excluded: a thread that flushes
// them to zero would see other masses than one that does not. With exponents up to 4 the masses of
// all positive priorities lie within 1e-152..1e155, so no sum of 2^32 of them leaves double's
// range.
inline constexpr float kSmallestPriority = std::numeric_limits<float>::min();
inline constexpr float kLargestPriority = std::numeric_limits<float>::max();

// Whether the memory can contain this priority: 0, or within the bounds above.
inline bool IsStoredPriority(float priority) {
  return priority == 0 || (priority >= kSmallestPriority && priority <= kLargestPriority);
}

// Every priority passes here before it is stored, on the host and on the GPU. Refuses (returns
// false or nullopt for) NaN, infinities, negative values and values beyond float's range. A
// positive priority stays positive however small it is; -0 becomes 0.
UPER_HOST_DEVICE inline bool AcceptPriority(double priority, float& stored) {
  if (!(priority >= 0 && priority <= static_cast<double>(kLargestPriority))) return false;
  const float rounded = static_cast<float>(priority);
  stored = priority == 0 ? 0.0F : (rounded < kSmallestPriority ? kSmallestPriority : rounded);
  return true;
}
inline std::optional<float> AcceptPriority(double priority) {
  float stored;
  return AcceptPriority(priority, stored) ? std::optional(stored) : std::nullopt;
}

// The largest priority that new items get, after one more update: it decays, but stays positive.
UPER_HOST_DEVICE inline double DecayedLargest(double largest, double decay) {
  const double decayed = largest * decay;
  const double smallest = static_cast<double>(kSmallestPriority);
  return decayed < smallest ? smallest : decayed;
}

}  // namespace uper
