#pragma once

#include <optional>

#include "uper/engine/device_replay.h"
#include "uper/envs/environment.h"
#include "uper/train/config/config.h"

namespace uper {

// The memory on the GPU that a configuration means, or nothing where the host must draw: the rank
// selector is on the host alone, and so are priorities that are kept but not drawn by.
std::optional<DeviceReplaySpec> GpuReplaySpecFrom(const RunConfig& config,
                                                  const EnvironmentSpec& environment);

}  // namespace uper
