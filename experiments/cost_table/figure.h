#pragma once

#include "experiments/framework/figure.h"

namespace uper::experiments::cost_table {

// `cost-table`: Table 1 of the paper, the seconds of an iteration of 1,000 frames for DQN, QR-DQN
// and a QR-DQN ensemble. The paper's text and the script behind its numbers differ, so both are
// measured:
//
//   literal       one update of 64 transitions per iteration, no evaluation
//   script        an update every 16 frames, 5,000 frames of evaluation per iteration, 8 members
//   script-twice  as script, but the ensemble alone and an update every 8 frames. The script calls
//                 the ensemble's step twice per frame as a work-around; here it acts once.
Figure MakeFigure();

}  // namespace uper::experiments::cost_table
