#include "experiments/direct_variance/arms_model.h"

#include <algorithm>
#include <cmath>

#include "uper/base/random.h"
#include "uper/core/direct_variance.h"

namespace uper::experiments::direct_variance {
namespace {

// One step of least mean squares, the gradient step on 1/2 (target - value)^2.
double LeastMeanSquaresStep(double value, double target, double step) {
  return value + step * (target - value);
}

}  // namespace

std::vector<int> LogarithmicTimes(int last) {
  constexpr double kPerDecade = 20;
  std::vector<int> times = {0};
  for (int i = 0; times.back() < last; ++i) {
    const int time = static_cast<int>(std::lround(std::pow(10.0, i / kPerDecade)));
    if (time > times.back()) times.push_back(std::min(time, last));
  }
  return times;
}

VarianceArmsTrace SimulateVarianceArms(const VarianceArmsOptions& options, std::uint64_t seed) {
  const ConalBandit bandit(options.bandit);
  VarianceArmsTrace trace;
  for (int arm = 0; arm < bandit.arms(); ++arm) {
    RandomStream start(seed, "direct variance start", arm);
    RandomStream rewards(seed, "direct variance rewards", arm);
    double mean = options.mean_start_low +
                  (options.mean_start_high - options.mean_start_low) * start.Uniform();
    double variance = options.variance_start_high * start.Uniform();
    std::vector<VarianceArmPoint>& points = trace.arms.emplace_back();
    int done = 0;
    for (const int time : LogarithmicTimes(options.updates)) {
      for (; done < time; ++done) {
        const double step = options.step.At(done);
        const double delta = bandit.DrawReward(arm, rewards) - mean;
        const double regression = LeastMeanSquaresStep(variance, delta * delta, step);
        variance = VarianceTdStep(variance, delta, 0, 0, step);
        trace.identity_gap = std::max(trace.identity_gap, std::abs(variance - regression));
        mean = LeastMeanSquaresStep(mean, mean + delta, step);
      }
      points.push_back({.updates = done, .mean = mean, .variance = variance});
    }
  }
  return trace;
}

}  // namespace uper::experiments::direct_variance
