#include "experiments/bandit/model.h"

#include <algorithm>
#include <cmath>

#include "uper/base/random.h"
#include "uper/replay/selectors/proportional_selector.h"
#include "uper/tabular/quantile_ensemble.h"

namespace uper::experiments::bandit {
namespace {

// The paper's bandit has neither floor nor cap. This floor only gives 0/0 a value.
constexpr PriorityLimits kNoLimits{.aleatoric_floor = 1e-30, .cap = 1e30};

struct Arm {
  QuantileEnsemble ensemble;
  RandomStream rewards;
  double reward = 0;  // stored in the replay memory
  double visits = 0;  // C: how often the arm was drawn
  int draws = 0;      // in this iteration
};

class Simulation {
 public:
  Simulation(const BanditOptions& options, std::uint64_t seed);

  BanditTrace Run();

 private:
  float ArmPriority(int index) const;
  int DrawArm();
  double WeightScale(int drawn, int step) const;
  void Step(int step);
  ArmRecord Record(int index) const;

  const BanditOptions options_;
  const ConalBandit bandit_;
  std::vector<Arm> arms_;
  ProportionalSelector memory_;  // one slot per arm
  RandomStream draws_;
  RandomStream masks_;
};

Simulation::Simulation(const BanditOptions& options, std::uint64_t seed)
    : options_(options),
      bandit_(options.bandit),
      memory_(bandit_.arms(), {.priority_exponent = options.priority_exponent, .uniform_mix = 0}),
      draws_(seed, "bandit draws"),
      masks_(seed, "bandit masks") {
  for (int index = 0; index < bandit_.arms(); ++index) {
    arms_.push_back({.ensemble = QuantileEnsemble(options.ensemble),
                     .rewards = RandomStream(seed, "bandit rewards", index)});
    Arm& arm = arms_.back();
    if (options.identical_start) {
      arm.ensemble.StartIdentical(options.start_low, options.start_high);
    } else {
      RandomStream start(seed, "bandit start", index);
      arm.ensemble.StartRandom(options.start_low, options.start_high, start);
    }
    arm.reward = bandit_.DrawReward(index, arm.rewards);
    memory_.Append(ArmPriority(index));
  }
}

float Simulation::ArmPriority(int index) const {
  const Arm& arm = arms_[index];
  PriorityInputs inputs{.visits = arm.visits};
  const PriorityNeeds& needs = InfoOf(options_.rule).needs;
  if (needs.td_error) inputs.td_error = arm.ensemble.TdError(arm.reward);
  if (needs.truth) inputs.oracle_distance = std::abs(bandit_.mean(index) - arm.ensemble.Mean());
  if (needs.uncertainty) inputs.uncertainty = arm.ensemble.Decompose(arm.reward);
  return static_cast<float>(ComputePriority(options_.rule, inputs, kNoLimits).value);
}

int Simulation::DrawArm() {
  Draw draw;
  memory_.Sample(draws_, {&draw, 1});
  return static_cast<int>(draw.slot);
}

// w / max w over the arms, w = P^(-importance exponent); 1 without importance weights.
double Simulation::WeightScale(int drawn, int step) const {
  if (!options_.importance_weights) return 1;
  const LinearSchedule exponent{
      .from = options_.importance_exponent_from,
      .to = 1,
      .end = static_cast<double>(options_.iterations) * options_.steps_per_iteration};
  double smallest = 1;
  for (int index = 0; index < bandit_.arms(); ++index) {
    const double probability = memory_.Probability(index);
    if (probability > 0) smallest = std::min(smallest, probability);
  }
  return std::pow(smallest / memory_.Probability(drawn), exponent.At(step));
}

void Simulation::Step(int step) {
  const int index = DrawArm();
  Arm& arm = arms_[index];
  const double scale = WeightScale(index, step);
  if (options_.fresh_reward_first) arm.reward = bandit_.DrawReward(index, arm.rewards);
  const std::uint64_t members = ~std::uint64_t{0} >> (64 - options_.ensemble.members);
  arm.ensemble.Update(arm.reward, scale * options_.learning_rate.At(step),
                      masks_.NextUint64() & members);
  if (!options_.fresh_reward_first) arm.reward = bandit_.DrawReward(index, arm.rewards);
  arm.visits += 1;
  arm.draws += 1;
  const auto slot = static_cast<std::uint32_t>(index);
  const float priority = ArmPriority(index);
  memory_.SetPriorities({&slot, 1}, {&priority, 1});
}

ArmRecord Simulation::Record(int index) const {
  const Arm& arm = arms_[index];
  const Uncertainty uncertainty = arm.ensemble.Decompose(arm.reward);
  const double error = bandit_.mean(index) - uncertainty.mean;
  return {.probability = memory_.Probability(index),
          .draw_share = static_cast<double>(arm.draws) / options_.steps_per_iteration,
          .estimate = uncertainty.mean,
          .epistemic = uncertainty.epistemic,
          .target_distance_sq = uncertainty.target_distance_sq,
          .aleatoric = uncertainty.aleatoric,
          .error_sq = error * error,
          .member_variance = arm.ensemble.MeanMemberVariance()};
}

BanditTrace Simulation::Run() {
  BanditTrace trace{.arms = bandit_.arms()};
  for (int iteration = 0; iteration < options_.iterations; ++iteration) {
    for (Arm& arm : arms_) arm.draws = 0;
    for (int i = 0; i < options_.steps_per_iteration; ++i) {
      Step(iteration * options_.steps_per_iteration + i);
    }
    double error_sum = 0;
    for (int index = 0; index < bandit_.arms(); ++index) {
      trace.records.push_back(Record(index));
      error_sum += trace.records.back().error_sq;
    }
    trace.mse.push_back(error_sum / bandit_.arms());
  }
  return trace;
}

}  // namespace

BanditTrace SimulateBandit(const BanditOptions& options, std::uint64_t seed) {
  return Simulation(options, seed).Run();
}

}  // namespace uper::experiments::bandit
