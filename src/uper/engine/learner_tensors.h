#pragma once

#include "uper/checkpoint/checkpoint_content.h"
#include "uper/checkpoint/checkpoint_reader.h"
#include "uper/nn/learner.h"

namespace uper {

// A learner's numbers as the tensors of a checkpoint: online/<name> and target/<name> in the file
// "parameters", m/<name> and v/<name> in "optimizer".

// The tensors are views of the learner's memory.
void SaveLearner(Learner& learner, checkpoint::CheckpointContent& content);
// Throws Error(kCorrupt) if the tensors are not those of this network.
void RestoreLearner(const checkpoint::LoadedCheckpoint& checkpoint, Learner& learner);

}  // namespace uper
