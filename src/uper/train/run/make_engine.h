#pragma once

#include "uper/envs/environment.h"
#include "uper/train/config/config.h"
#include "uper/train/loop/trainer.h"

namespace uper {

// Adds what a configuration means to parts that have learner, environments and, if the replay
// memory is on a device, that memory: the store, the record, the engine, and who plays. `threads`
// may play the environments, if there are several.
void AddEngine(const RunConfig& config, const EnvironmentSpec& spec, int threads,
               TrainerParts& parts);

}  // namespace uper
