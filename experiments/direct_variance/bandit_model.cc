#include "experiments/direct_variance/bandit_model.h"

#include <cmath>

#include "uper/base/random.h"
#include "uper/core/direct_variance.h"
#include "uper/core/priority.h"
#include "uper/tabular/quantile_ensemble.h"

namespace uper::experiments::direct_variance {
namespace {

PriorityRule RuleOf(DirectScheme scheme) {
  switch (scheme) {
    case DirectScheme::kUniform:
      return PriorityRule::kUniform;
    case DirectScheme::kTd:
      return PriorityRule::kTd;
    case DirectScheme::kQuantileUper:
    case DirectScheme::kDirectUper:
      return PriorityRule::kInfoGainDelta;
  }
  return PriorityRule::kUniform;
}

// One bit per member. REQUIRES: 1 <= members <= 64.
std::uint64_t AllMembers(std::size_t members) {
  return members >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << members) - 1;
}

// One arm: its learners and its single transition in the replay memory.
struct Arm {
  QuantileEnsemble ensemble;
  RandomStream rewards;
  double direct_variance = 0;
  double reward = 0;        // stored
  Uncertainty uncertainty;  // of the stored reward
  double weight = 0;        // priority^exponent
  int draws = 0;
};

// The replay memory with its five transitions.
class DirectBandit {
 public:
  DirectBandit(const DirectBanditOptions& options, DirectScheme scheme, std::uint64_t seed)
      : options_(options),
        scheme_(scheme),
        bandit_(options.bandit),
        draws_(seed, "direct variance draws"),
        masks_(seed, "direct variance masks") {
    RandomStream quantiles(seed, "direct variance quantiles");
    RandomStream start(seed, "direct variance bandit start");
    for (int a = 0; a < bandit_.arms(); ++a) {
      Arm& arm =
          arms_.emplace_back(Arm{.ensemble = QuantileEnsemble(options.ensemble),
                                 .rewards = RandomStream(seed, "direct variance bandit rewards", a),
                                 .uncertainty = {}});
      arm.ensemble.StartRandom(-1, 1, quantiles);
      arm.direct_variance = options.variance_start_high * start.Uniform();
      Replace(a);
    }
  }

  // One draw, one update of the drawn arm with its stored reward, one new reward.
  void Step(double t) {
    const int drawn = Draw();
    Arm& arm = arms_[drawn];
    ++arm.draws;
    const double delta = arm.reward - arm.uncertainty.mean;
    arm.direct_variance =
        VarianceTdStep(arm.direct_variance, delta, 0, 0, options_.variance_step.At(t));
    const std::uint64_t all_members = AllMembers(options_.ensemble.members);
    arm.ensemble.Update(arm.reward, options_.learning_rate.At(t),
                        masks_.NextUint64() & all_members);
    Replace(drawn);
  }

  double MeanSquaredError() const {
    double sum = 0;
    for (int a = 0; a < bandit_.arms(); ++a) {
      const double error = bandit_.mean(a) - arms_[a].uncertainty.mean;
      sum += error * error;
    }
    return sum / bandit_.arms();
  }

  const std::vector<Arm>& arms() const { return arms_; }

 private:
  // An arm in proportion to the weights; any arm when all of them are 0.
  int Draw() {
    double total = 0;
    for (const Arm& arm : arms_) total += arm.weight;
    if (!(total > 0)) return static_cast<int>(draws_.UniformInt(arms_.size()));
    double rest = total * draws_.Uniform();
    for (std::size_t a = 0; a + 1 < arms_.size(); ++a) {
      if (rest < arms_[a].weight) return static_cast<int>(a);
      rest -= arms_[a].weight;
    }
    return static_cast<int>(arms_.size()) - 1;
  }

  // A fresh reward in the arm's transition, and its priority.
  void Replace(int a) {
    Arm& arm = arms_[a];
    arm.reward = bandit_.DrawReward(a, arm.rewards);
    arm.uncertainty = arm.ensemble.Decompose(arm.reward);
    PriorityInputs inputs{.uncertainty = arm.uncertainty};
    if (scheme_ == DirectScheme::kTd) inputs.td_error = arm.ensemble.TdError(arm.reward);
    if (scheme_ == DirectScheme::kDirectUper) {
      inputs.uncertainty.aleatoric = arm.direct_variance;
    }
    arm.weight =
        std::pow(ComputePriority(RuleOf(scheme_), inputs, {}).value, options_.priority_exponent);
  }

  const DirectBanditOptions& options_;
  const DirectScheme scheme_;
  const ConalBandit bandit_;
  RandomStream draws_;
  RandomStream masks_;
  std::vector<Arm> arms_;
};

}  // namespace

std::string_view DirectSchemeName(DirectScheme scheme) {
  switch (scheme) {
    case DirectScheme::kUniform:
      return "uniform";
    case DirectScheme::kTd:
      return "td";
    case DirectScheme::kQuantileUper:
      return "info_gain_delta";
    case DirectScheme::kDirectUper:
      return "info_gain_delta_direct";
  }
  return "";
}

DirectBanditTrace SimulateDirectBandit(const DirectBanditOptions& options, DirectScheme scheme,
                                       std::uint64_t seed) {
  DirectBandit bandit(options, scheme, seed);
  DirectBanditTrace trace;
  double t = 0;
  for (int iteration = 0; iteration < options.iterations; ++iteration) {
    for (int step = 0; step < options.steps_per_iteration; ++step, ++t) bandit.Step(t);
    trace.mse.push_back(bandit.MeanSquaredError());
  }
  for (const Arm& arm : bandit.arms()) {
    trace.direct_variance.push_back(arm.direct_variance);
    trace.quantile_aleatoric.push_back(arm.uncertainty.aleatoric);
    trace.draw_share.push_back(arm.draws / t);
  }
  return trace;
}

}  // namespace uper::experiments::direct_variance
