#pragma once

#include <array>

#include "uper/nn/cpu/update_profile.h"
#include "uper/nn/learner.h"

namespace uper::cpu {

// The work of one phase of an update, whatever the implementation.
struct PhaseCost {
  double flop = 0;   // of gemms (a multiply-add counts as two) and of the optimizer
  double bytes = 0;  // parameters, optimizer state and activations, each read or written once
};

// The work of each UpdatePhase. `learning` is the expected share of (sample, member) pairs that are
// not masked; masked pairs need no backward pass. Zeros after a ReLU count as work. Losses and
// statistics count as none.
std::array<PhaseCost, kUpdatePhases> CostOfUpdate(const LearnerSpec& spec, double learning);

}  // namespace uper::cpu
