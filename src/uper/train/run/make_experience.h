#pragma once

#include <memory>

#include "uper/engine/frame_experience.h"
#include "uper/engine/record_experience.h"
#include "uper/engine/transition_store.h"
#include "uper/envs/environment.h"
#include "uper/train/config/config.h"

namespace uper {

// The memory that a configuration means: frames that are stacked are stored once each, other
// observations whole. `drawn_on_gpu`: a memory on the GPU follows it (GpuReplaySpecFrom) and draws.
std::unique_ptr<Experience> MakeExperience(const RunConfig& config, const EnvironmentSpec& spec,
                                           bool drawn_on_gpu = false);

RecordExperienceOptions RecordExperienceFrom(const RunConfig& config, const EnvironmentSpec& spec);
FrameExperienceOptions FrameExperienceFrom(const RunConfig& config, const EnvironmentSpec& spec);

}  // namespace uper
