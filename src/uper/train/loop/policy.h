#pragma once

#include <optional>
#include <span>

#include "uper/base/random.h"

namespace uper {

// The epsilon-greedy choice in two parts, because a random action needs no values. With probability
// epsilon, RandomAction() returns an action drawn uniformly from all; otherwise nothing. Then
// GreedyAction() returns the best action, and draws uniformly among equal values. Together they
// take one number of the stream, and one more for a random action or a tie. REQUIRES: there are
// actions.
std::optional<int> RandomAction(std::size_t actions, double epsilon, RandomStream& stream);
int GreedyAction(std::span<const float> q, RandomStream& stream);

}  // namespace uper
