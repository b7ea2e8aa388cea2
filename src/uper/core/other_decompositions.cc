#include "uper/core/other_decompositions.h"

#include <cmath>
#include <numbers>

#include "uper/base/check.h"
#include "uper/core/moments.h"

namespace uper {

DeupUncertainty DecomposeDeup(std::span<const double> targets, double estimate) {
  UPER_CHECK(!targets.empty(), "at least one target is needed");
  const Moments moments = ComputeMoments(targets);
  double squares = 0;
  for (const double target : targets) squares += (target - estimate) * (target - estimate);
  const double distance = estimate - moments.mean;
  return {.total = squares / static_cast<double>(targets.size()),
          .aleatoric = moments.variance,
          .epistemic = distance * distance};
}

QuantileErrorTerms DecomposeQuantileError(std::span<const double> theta,
                                          std::span<const double> rewards) {
  UPER_CHECK(!theta.empty() && !rewards.empty(), "quantiles and rewards are needed");
  const Moments estimate = ComputeMoments(theta);
  const Moments reward = ComputeMoments(rewards);
  const double distance = reward.mean - estimate.mean;
  return {.true_distance_sq = distance * distance,
          .target_variance = reward.variance,
          .estimation_variance = estimate.variance};
}

double PosteriorVariance(double prior_variance, double sample_variance) {
  return prior_variance * (sample_variance / (prior_variance + sample_variance));
}

double GaussianEntropy(double variance) {
  return 0.5 * std::log(2 * std::numbers::pi * std::numbers::e * variance);
}

}  // namespace uper
