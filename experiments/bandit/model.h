#pragma once

#include <cstdint>
#include <vector>

#include "uper/core/priority.h"
#include "uper/core/schedule.h"
#include "uper/core/uncertainty.h"
#include "uper/envs/bandit/conal_bandit.h"

namespace uper::experiments::bandit {

// The bandit experiment (paper, section "Conal bandit" and SM "Arm-Bandit Task"): a replay memory
// with one transition per arm. Each step draws an arm by priority and updates the arm's ensemble
// with the stored reward (each member with probability 1/2). Then it replaces that reward by a
// fresh one and recomputes the arm's priority.
struct BanditOptions {
  ConalBanditOptions bandit;
  PriorityRule rule = PriorityRule::kInfoGainDelta;

  EnsembleShape ensemble{.members = 30, .quantiles = 30};
  double start_low = -1;  // range of the initial quantiles
  double start_high = 1;
  bool identical_start = false;  // all members from one evenly spaced grid

  int iterations = 200;
  int steps_per_iteration = 1000;
  HalvingSchedule learning_rate{.initial = 0.005, .half_life = 40'000};

  double priority_exponent = 0.7;
  bool importance_weights = false;        // scale the step by w / max w over the arms
  double importance_exponent_from = 0.5;  // linear over the run, to 1
  bool fresh_reward_first = false;  // draw the new reward before the update instead of after it
};

// One arm at the end of an iteration.
struct ArmRecord {
  double probability = 0;         // exact probability of being drawn next
  double draw_share = 0;          // share of the iteration's draws
  double estimate = 0;            // Q(a)
  double epistemic = 0;           // E
  double target_distance_sq = 0;  // (stored reward - Q)^2
  double aleatoric = 0;           // A
  double error_sq = 0;            // (true mean - Q)^2
  double member_variance = 0;     // mean_k V_tau[theta_k]
};

struct BanditTrace {
  int arms = 0;
  std::vector<double> mse;         // [iteration], mean over arms of error_sq
  std::vector<ArmRecord> records;  // [iteration, arm]

  const ArmRecord& At(int iteration, int arm) const { return records[iteration * arms + arm]; }
};

// Deterministic in (options, seed). Schemes with the same seed share their initial quantiles and
// the sequence of rewards of each arm.
BanditTrace SimulateBandit(const BanditOptions& options, std::uint64_t seed);

}  // namespace uper::experiments::bandit
