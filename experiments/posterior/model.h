#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "uper/core/schedule.h"
#include "uper/core/uncertainty.h"

namespace uper::experiments::posterior {

// "Variance as Uncertainty Estimation" (paper, SM): an ensemble of quantile regressors and the
// exact Bayesian posterior of the mean learn from the same samples of N(data_mean, data_sd^2). Both
// start at the prior N(prior_mean, prior_sd^2). The fields under "open" are not in the paper; their
// defaults are those of its bandit.
struct PosteriorOptions {
  double data_mean = 2;
  double data_sd = 1;
  double prior_mean = 0;
  double prior_sd = 1;

  // Open.
  EnsembleShape ensemble{.members = 50, .quantiles = 30};                // the 50 is the paper's
  HalvingSchedule learning_rate{.initial = 0.005, .half_life = 40'000};  // in samples
  double initial_spread = 1;  // a member starts evenly spaced over its mean +- this
  int samples = 200'000;
};

// The exact posterior of a Gaussian mean with known data variance, one sample at a time:
//   variance = 1 / (1 / prior_sd^2 + n / data_sd^2),
//   mean = variance * (prior_mean / prior_sd^2 + sum x / data_sd^2).
class GaussianPosterior {
 public:
  explicit GaussianPosterior(const PosteriorOptions& options);

  void Observe(double sample);
  double mean() const { return weighted_sum_ / precision_; }
  double variance() const { return 1 / precision_; }

 private:
  double data_precision_;
  double precision_;
  double weighted_sum_;  // mean * precision
};

// Both models after the same number of samples.
struct PosteriorPoint {
  int samples = 0;
  double ensemble_mean = 0;    // Q
  double epistemic = 0;        // E: mean over quantiles of the variance over members
  double means_variance = 0;   // variance over members of their means
  double aleatoric = 0;        // A
  double target_distance = 0;  // |data_mean - Q|
  double bayes_mean = 0;
  double bayes_variance = 0;
};

struct PosteriorTrace {
  std::vector<PosteriorPoint> points;  // at RecordTimes(options.samples)
  std::vector<double> bayes_means;     // after each number of samples, from 0
  std::vector<double> quantiles;       // final, mean over members [quantile]
  std::vector<double> quantile_sds;    // final, standard deviation over members [quantile]
};

// 0, 1, 2, ... and then about 40 times per decade, evenly spaced in the logarithm, up to `samples`.
std::vector<int> RecordTimes(int samples);

// Deterministic in (options, seed). Each member is updated with probability 1/2 per sample.
PosteriorTrace SimulatePosterior(const PosteriorOptions& options, std::uint64_t seed);

}  // namespace uper::experiments::posterior
