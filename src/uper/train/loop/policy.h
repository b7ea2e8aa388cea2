#pragma once

#include <optional>
#include <span>

#include "uper/base/random.h"

namespace uper {

// Epsilon-greedy: with probability epsilon one of all actions, each alike; otherwise the best one,
// equal values sharing the choice alike. Takes one number of the stream, and one more for a random
// action or a tie. In two parts, because a random action needs no values: the random action, if it
// is to be one, and otherwise the greedy one. REQUIRES: there are actions.
std::optional<int> RandomAction(std::size_t actions, double epsilon, RandomStream& stream);
int GreedyAction(std::span<const float> q, RandomStream& stream);

}  // namespace uper
