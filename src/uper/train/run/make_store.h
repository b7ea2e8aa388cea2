#pragma once

#include <optional>

#include "uper/core/priority.h"
#include "uper/engine/device_replay.h"
#include "uper/engine/transition_store.h"
#include "uper/envs/environment.h"
#include "uper/train/config/config.h"

namespace uper {

PriorityLimits PriorityLimitsFrom(const RunConfig& config);

// The options of the store for a configuration. Stacked frames are stored once each, other
// observations whole.
TransitionStoreOptions StoreOptionsFrom(const RunConfig& config, const EnvironmentSpec& spec);

// The replay memory on a device that mirrors the store, or nothing if only the host can draw. That
// is so for the rank selector, and for uniform draws with priorities that are kept nevertheless.
std::optional<DeviceReplaySpec> DeviceReplaySpecFrom(const RunConfig& config,
                                                     const EnvironmentSpec& spec);

}  // namespace uper
