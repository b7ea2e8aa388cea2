#pragma once

#include <array>

#include "uper/nn/cpu/update_profile.h"
#include "uper/nn/learner.h"

namespace uper {

// What one part of an update has to do, whatever the implementation.
struct PhaseCost {
  double flop = 0;   // of products (a multiply-add counts as two), and of the optimiser
  double bytes = 0;  // parameters, optimiser state and activations, each read or written once
};

// The work of each UpdatePhase. `learning` is the expected share of (sample, member) pairs that the
// masks let learn: the others need nothing backward. Zeros that ReLU left count as work; losses and
// statistics are no products and count as none.
std::array<PhaseCost, kStepParts> WorkOfStep(const LearnerSpec& spec, double learning);

}  // namespace uper
