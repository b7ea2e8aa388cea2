#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "uper/envs/environment.h"

namespace uper {

// Makes an environment; equal arguments must give environments that play alike.
using EnvironmentFactory =
    std::function<std::unique_ptr<Environment>(std::uint64_t seed, std::uint64_t index)>;

struct ConformanceOptions {
  int steps = 400;         // of the random play in which each property is looked at
  int save_points = 40;    // spread over these steps
  bool is_random = true;   // false: seed and index decide nothing
  bool has_lives = false;  // true: a discount may be 0 in mid-episode
  // Damaged and shortened copies that are tried of each saved state; 0: one for every byte.
  int damaged_states = 0;
};

// Plays an environment against the contract of environment.h and returns what it breaks, in words;
// nothing when all is well. A test of an environment is one line:
//   EXPECT_EQ(ConformanceProblems(factory), std::vector<std::string>{});
// Looks at: the spec; equal seeds play alike, other seeds and indexes differently; the order of
// Reset() and Step(), actions and buffer sizes are checked, and a refused call changes nothing;
// every byte of an observation is written and none beside it; elements in range; flags, discount
// and reward fit together; a saved state continues bit for bit, also over ends of episodes, from
// every point of an episode and on top of anything; saving disturbs nothing; damaged states are
// refused or harmless.
std::vector<std::string> ConformanceProblems(const EnvironmentFactory& make,
                                             const ConformanceOptions& options = {});

}  // namespace uper
