#pragma once

#include "experiments/framework/figure.h"

namespace uper::experiments::direct_variance {

// `direct-variance`: the TD(0) variance learner (paper, SM "Direct Variance Estimation") against
// the truth on the bandit's arms and on a Markov chain, and as A in UPER's priority. Writes
// arms.csv, chain.csv, mse.csv (scheme,seed,iteration,mse) and bandit_arms.csv (both estimates of
// each arm's variance at the end, and the arm's share of the draws). Tests claim 39.
Figure MakeFigure();

}  // namespace uper::experiments::direct_variance
