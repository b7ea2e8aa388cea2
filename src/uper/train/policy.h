#pragma once

#include <span>

#include "uper/base/random.h"

namespace uper {

// Epsilon-greedy: with probability epsilon one of all actions, each alike; otherwise the best one,
// equal values sharing the choice alike. Takes one number of the stream, and one more for a random
// action or a tie. REQUIRES: q is not empty.
int EpsilonGreedy(std::span<const float> q, double epsilon, RandomStream& stream);

}  // namespace uper
