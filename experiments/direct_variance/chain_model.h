#pragma once

#include <cstdint>
#include <vector>

#include "uper/core/schedule.h"

namespace uper::experiments::direct_variance {

// A Markov reward process whose return's variance is known: states 0..n-1 in a row. A step in state
// i pays N(reward_mean, sigma_i^2), then stays in i with probability `stay` and goes to i + 1
// otherwise; beyond the last state the episode ends. Noise comes from the rewards and from the
// transitions, so both terms of the variance's Bellman equation matter.
struct VarianceChainOptions {
  std::vector<double> sigmas = {0.1, 0.6, 1.1, 1.6, 2.1};  // one per state, as the bandit's arms
  double reward_mean = 1;
  double stay = 0.3;  // in [0, 1)
  double discount = 0.9;

  int episodes = 40'000;
  HalvingSchedule step{.initial = 0.01, .half_life = 8'000};  // of both learners, in episodes
  double variance_start_high = 0.1;                           // initial variances from U(0, this)
};

// Mean and variance of the return from each state.
struct ChainTruth {
  std::vector<double> value;     // [state]
  std::vector<double> variance;  // [state]
};

// The return is G_i = r_i + g G_s', s' = i with probability q and i + 1 with probability 1 - q,
// r_i independent of s'. By the law of total variance, conditioning on s',
//   V_i   = m + g (q V_i + (1 - q) V_{i+1}),
//   Var_i = sigma_i^2 + g^2 Var_s'(V_s') + g^2 E_s'[Var_s']
//         = sigma_i^2 + g^2 q (1 - q) (V_i - V_{i+1})^2 + g^2 (q Var_i + (1 - q) Var_{i+1}),
// with V_n = Var_n = 0. Each equation holds its own unknown linearly, so both are solved from the
// last state backwards.
ChainTruth SolveChain(const VarianceChainOptions& options);

// Learned values and variances after some episodes.
struct ChainPoint {
  int episodes = 0;
  std::vector<double> value;
  std::vector<double> variance;
};

// TD(0) for the value and VarianceTdStep for its variance, from whole episodes that start in state
// 0; recorded at LogarithmicTimes. Deterministic in (options, seed).
std::vector<ChainPoint> SimulateVarianceChain(const VarianceChainOptions& options,
                                              std::uint64_t seed);

}  // namespace uper::experiments::direct_variance
