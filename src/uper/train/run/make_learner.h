#pragma once

#include <cstdint>
#include <span>

#include "uper/base/random.h"
#include "uper/envs/environment.h"
#include "uper/nn/learner.h"
#include "uper/train/config/config.h"

namespace uper {

// The learner that a configuration describes, for an environment's observations and actions.
// Throws Error(kUsage) if they do not fit. REQUIRES: FillAutomaticKeys() was called.
LearnerSpec LearnerSpecFrom(const RunConfig& config, const EnvironmentSpec& environment);

// Fills the parameters of a network from a stream, by the rule in the configuration.
void InitializeParameters(const NetworkConfig& config, const Learner& learner, RandomStream& stream,
                          std::span<float> parameters);

// Sets the first parameters of a run: the online network from the stream "initialisation" of the
// seed, the target network as a copy.
void InitializeLearner(const RunConfig& config, Learner& learner);

}  // namespace uper
