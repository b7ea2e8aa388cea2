#pragma once

#include <span>
#include <vector>

namespace uper {

// Evaluations that DQN Zoo's curves average over.
inline constexpr int kSmoothingWindow = 10;

// Trailing mean: of each value and the `window` - 1 before it, fewer at the start.
// REQUIRES: window >= 1.
std::vector<double> TrailingMean(std::span<const double> values, int window = kSmoothingWindow);

}  // namespace uper
