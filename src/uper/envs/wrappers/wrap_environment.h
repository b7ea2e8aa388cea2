#pragma once

#include <cstdint>
#include <memory>

#include "uper/envs/environment.h"
#include "uper/envs/options.h"

namespace uper {

// The values that an environment uses where the options say "the environment's own".
struct EnvironmentDefaults {
  double sticky = 0;
  bool applies_sticky_itself = false;  // the environment repeats actions itself, frame by frame
  std::int64_t time_limit_frames = 0;
};

// Wraps an environment as the options say. From the inside out: sticky actions, random actions, the
// time limit, reward noise, noisy channels. Noisy channels are outermost, so that reward noise
// hashes the game's own observation. A feature that is off adds no wrapper.
// REQUIRES: the options are valid.
std::unique_ptr<Environment> WrapEnvironment(std::unique_ptr<Environment> environment,
                                             const EnvironmentOptions& options,
                                             const EnvironmentDefaults& own, std::uint64_t seed,
                                             std::uint64_t index);

// The specification of such an environment after wrapping. Throws Error(kUsage) if
// the options do not fit it.
EnvironmentSpec WrappedSpec(EnvironmentSpec spec, const EnvironmentOptions& options);

}  // namespace uper
