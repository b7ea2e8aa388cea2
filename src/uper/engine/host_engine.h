#pragma once

#include <memory>

#include "uper/engine/engine.h"
#include "uper/engine/transition_store.h"
#include "uper/engine/update_report.h"
#include "uper/nn/learner.h"

namespace uper {

// An engine on the host: Learn() draws, gathers and makes its updates at once. The parts must
// outlive it.
std::unique_ptr<Engine> MakeHostEngine(const EngineSpec& spec, Learner& learner,
                                       TransitionStore& store, UpdateSink& sink);

}  // namespace uper
