#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "uper/envs/environment.h"

namespace uper {

// Makes an environment. Equal arguments must give environments that behave alike.
using EnvironmentFactory =
    std::function<std::unique_ptr<Environment>(std::uint64_t seed, std::uint64_t index)>;

struct ConformanceOptions {
  int steps = 400;         // of the random play in which each property is looked at
  int save_points = 40;    // spread over these steps
  bool is_random = true;   // false: seed and index decide nothing
  bool has_lives = false;  // true: a discount may be 0 in mid-episode
  // Number of damaged or shortened copies per saved state; 0: one per byte.
  int damaged_states = 0;
};

// Checks an environment against the contract of environment.h and returns its violations, in words.
// A test of an environment is one line:
//   EXPECT_EQ(ConformanceProblems(factory), std::vector<std::string>{});
// Checks that the spec is valid. Equal seeds play alike, other seeds and indexes differently. The
// environment checks the order of Reset() and Step(), actions and buffer sizes, and a refused call
// changes nothing. It writes every byte of an observation and none beside it; elements are in
// range; flags, discount and reward are consistent. A saved state continues bit for bit, from every
// point of an episode, across ends of episodes and over any earlier state. Saving changes nothing.
// Damaged states are refused or harmless.
std::vector<std::string> ConformanceProblems(const EnvironmentFactory& make,
                                             const ConformanceOptions& options = {});

}  // namespace uper
