#pragma once

#include "experiments/framework/figure.h"

namespace uper::experiments {

// `cost-table`: Table 1 of the paper, seconds an iteration of 1,000 frames takes, for DQN, QR-DQN
// and a QR-DQN ensemble. The paper's text and the script behind its numbers differ, so both are
// measured:
//
//   literal       one update of 64 transitions an iteration, no evaluation
//   script        an update each 16 frames, 5,000 frames of evaluation an iteration, 8 members
//   script-twice  as script, the ensemble alone, with an update each 8 frames: the script's
//                 work-around calls the ensemble's step twice a frame (here it acts once)
Figure CostTableFigure();

}  // namespace uper::experiments
