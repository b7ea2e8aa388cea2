#pragma once

#include <cstdint>
#include <vector>

#include "uper/core/schedule.h"
#include "uper/envs/bandit/conal_bandit.h"

namespace uper::experiments::direct_variance {

// The direct variance learner on the arms of the bandit, one arm at a time: the mean by
// Q += step * (r - Q), the variance by VarianceTdStep with discount 0. Both steps follow the
// paper's bandit schedule at an arm's share (one fifth) of its 200,000 steps.
struct VarianceArmsOptions {
  ConalBanditOptions bandit;
  double mean_start_low = -1;  // initial means, as the bandit's quantiles
  double mean_start_high = 1;
  double variance_start_high = 0.1;  // initial variances from U(0, this)
  int updates = 40'000;
  HalvingSchedule step{.initial = 0.005, .half_life = 8'000};  // in updates
};

struct VarianceArmPoint {
  int updates = 0;
  double mean = 0;
  double variance = 0;
};

struct VarianceArmsTrace {
  std::vector<std::vector<VarianceArmPoint>> arms;  // [arm][recorded time]
  // Largest |variance step - least-mean-squares step towards delta^2| of all updates.
  double identity_gap = 0;
};

// 0 and about 20 times per decade, evenly spaced in the logarithm, up to `last`.
std::vector<int> LogarithmicTimes(int last);

// Deterministic in (options, seed).
VarianceArmsTrace SimulateVarianceArms(const VarianceArmsOptions& options, std::uint64_t seed);

}  // namespace uper::experiments::direct_variance
