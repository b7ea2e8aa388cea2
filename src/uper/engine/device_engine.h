#pragma once

#include <memory>

#include "uper/engine/device_replay.h"
#include "uper/engine/engine.h"
#include "uper/engine/transition_store.h"
#include "uper/engine/update_report.h"
#include "uper/nn/learner.h"

namespace uper {

// An engine that queues updates on the device of the learner and of the replay memory beside it.
// The store stays the source of all transitions. If the device draws, the store's selector must be
// SelectorKind::kMirror. The parts must outlive the engine. REQUIRES: rule, limits and
// normalization are those of the replay memory, which applies them.
std::unique_ptr<Engine> MakeDeviceEngine(const EngineSpec& spec, Learner& learner,
                                         TransitionStore& store, DeviceReplay& replay,
                                         UpdateSink& sink);

}  // namespace uper
