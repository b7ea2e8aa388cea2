#pragma once

#include "experiments/framework/figure.h"

namespace uper::experiments::gridworld {

// The noisy gridworld (paper, Fig. 2 d and e): Q-learning without replay and with uniform,
// TD-error and information-gain replay. Writes
//   returns.csv  method,seed,episode,return,steps,reached_goal: the greedy test episode after each
//                training episode (episodes from 1; return undiscounted, noise included)
//   heatmap.csv  method,row,column,draws: replay draws by the cell that the drawn transition left
//                (s_tm1), summed over seeds and the whole training
//   map.csv      row,column,kind: wall, free, start, goal, noisy
// with rows and columns counted from 0 at the top left.
Figure MakeFigure();

}  // namespace uper::experiments::gridworld
