#pragma once

#include <memory>

#include "uper/engine/device_replay.h"
#include "uper/nn/learner.h"

namespace uper {

// A replay memory on the GPU beside a learner, which makes its updates. At most one per learner; it
// must not outlive it. Throws Error(kResources) when the GPU's memory is too small.
// REQUIRES: the learner was made by MakeGpuLearner().
std::unique_ptr<DeviceReplay> MakeDeviceReplay(const DeviceReplaySpec& spec, Learner& learner);

}  // namespace uper
