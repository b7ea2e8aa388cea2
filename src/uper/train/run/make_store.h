#pragma once

#include <optional>

#include "uper/engine/device_replay.h"
#include "uper/engine/transition_store.h"
#include "uper/envs/environment.h"
#include "uper/train/config/config.h"

namespace uper {

// The store that a configuration means: stacked frames are stored once each, other observations
// whole.
TransitionStoreOptions StoreOptionsFrom(const RunConfig& config, const EnvironmentSpec& spec);

// The replay memory on a device beside it, or nothing if the host must draw: the rank selector is
// on the host alone, and so are priorities that are kept but not drawn by.
std::optional<DeviceReplaySpec> DeviceReplaySpecFrom(const RunConfig& config,
                                                     const EnvironmentSpec& spec);

}  // namespace uper
