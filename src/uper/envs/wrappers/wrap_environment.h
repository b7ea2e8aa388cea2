#pragma once

#include <cstdint>
#include <memory>

#include "uper/envs/environment.h"
#include "uper/envs/options.h"

namespace uper {

// What the options' "the environment's own" means for an environment.
struct EnvironmentDefaults {
  double sticky = 0;
  bool applies_sticky_itself = false;  // the environment repeats actions itself, frame by frame
  std::int64_t time_limit_frames = 0;
};

// Wraps an environment in everything the options ask for: sticky actions, random actions, the time
// limit, reward noise and noisy channels, from the inside out. Noisy channels come last, so that
// reward noise chooses its states by the game's own observation. What is off costs nothing.
// REQUIRES: the options are valid.
std::unique_ptr<Environment> WrapEnvironment(std::unique_ptr<Environment> environment,
                                             const EnvironmentOptions& options,
                                             const EnvironmentDefaults& own, std::uint64_t seed,
                                             std::uint64_t index);

}  // namespace uper
