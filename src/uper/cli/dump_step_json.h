#pragma once

#include <cstdint>
#include <string>

#include "uper/nn/learner.h"
#include "uper/train/config/config.h"

namespace uper {

// The text `settings` of `uper dump-step`: everything that an independent checker needs to repeat
// the updates from the arrays beside it, as JSON in ASCII.
std::string StepSettings(const RunConfig& config, const LearnerSpec& spec, std::uint64_t seed,
                         int updates);

}  // namespace uper
