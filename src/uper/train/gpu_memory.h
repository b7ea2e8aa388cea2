#pragma once

#include <optional>

#include "uper/envs/environment.h"
#include "uper/nn/gpu_replay.h"
#include "uper/train/config.h"

namespace uper {

// The memory on the GPU that a configuration means, or nothing where the host must draw: the rank
// selector is on the host alone, and so are priorities that are kept but not drawn by.
std::optional<GpuReplaySpec> GpuReplaySpecFrom(const RunConfig& config,
                                               const EnvironmentSpec& environment);

}  // namespace uper
