#pragma once

#include <cstdint>
#include <memory>

#include "uper/envs/environment.h"
#include "uper/envs/options.h"

namespace uper {

// Wraps an environment in everything the options ask for: sticky actions (or `default_sticky`),
// random actions, the time limit, reward noise and noisy channels, from the inside out. Noisy
// channels come last, so that reward noise chooses its states by the game's own observation. What
// is off costs nothing. REQUIRES: the options are valid.
std::unique_ptr<Environment> AddNoise(std::unique_ptr<Environment> environment,
                                      const EnvironmentOptions& options, double default_sticky,
                                      std::uint64_t seed, std::uint64_t index);

}  // namespace uper
