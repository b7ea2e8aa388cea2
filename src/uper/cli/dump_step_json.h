#pragma once

#include <cstdint>
#include <string>

#include "uper/nn/learner.h"
#include "uper/train/config/config.h"

namespace uper::cli {

// The text `settings` of `uper dump-step`, as JSON in ASCII. With it and the other arrays of the
// file, an independent checker can repeat the updates.
std::string DumpStepSettings(const RunConfig& config, const LearnerSpec& spec, std::uint64_t seed,
                             int updates);

}  // namespace uper::cli
