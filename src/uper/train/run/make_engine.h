#pragma once

#include "uper/envs/environment.h"
#include "uper/train/config/config.h"
#include "uper/train/loop/trainer.h"

namespace uper {

// Completes the parts of a run for a configuration: adds the store, the record, the options of the
// actors, and the engine. The parts must already have the learner, the environments and, if it is
// on a device, the replay memory. Several environments may be played by up to `threads` threads.
void AddEngine(const RunConfig& config, const EnvironmentSpec& spec, int threads,
               TrainerParts& parts);

}  // namespace uper
