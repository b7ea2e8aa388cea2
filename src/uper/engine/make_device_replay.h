#pragma once

#include <memory>

#include "uper/engine/device_replay.h"
#include "uper/nn/learner.h"

namespace uper {

// A replay memory on the GPU for a learner, which makes its updates. A learner has at most one
// replay memory, which must not outlive the learner. Throws Error(kResources) when the GPU's memory
// is too small.
// REQUIRES: the learner was made by MakeGpuLearner().
std::unique_ptr<DeviceReplay> MakeDeviceReplay(const DeviceReplaySpec& spec, Learner& learner);

}  // namespace uper
