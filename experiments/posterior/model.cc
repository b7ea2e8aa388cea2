#include "experiments/posterior/model.h"

#include <cmath>

#include "uper/base/check.h"
#include "uper/base/random.h"
#include "uper/core/moments.h"
#include "uper/core/quantile.h"
#include "uper/tabular/quantile_ensemble.h"

namespace uper::experiments::posterior {
namespace {

// One bit per member. REQUIRES: 1 <= members <= 64.
std::uint64_t AllMembers(std::size_t members) {
  return members >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << members) - 1;
}

// Member k evenly spaced over [mean - spread, mean + spread], its mean drawn from the prior.
void StartFromPrior(const PosteriorOptions& options, RandomStream& stream,
                    QuantileEnsemble& ensemble) {
  for (std::size_t k = 0; k < options.ensemble.members; ++k) {
    const double mean = options.prior_mean + options.prior_sd * stream.Normal();
    const std::span<double> theta = ensemble.member(k);
    for (std::size_t i = 0; i < theta.size(); ++i) {
      theta[i] = mean + options.initial_spread * (2 * QuantileMidpoint(i, theta.size()) - 1);
    }
  }
}

double MeansVariance(const PosteriorOptions& options, const QuantileEnsemble& ensemble) {
  const std::size_t quantiles = options.ensemble.quantiles;
  std::vector<double> means(options.ensemble.members);
  for (std::size_t k = 0; k < means.size(); ++k) {
    means[k] = ComputeMoments(ensemble.theta().subspan(k * quantiles, quantiles)).mean;
  }
  return ComputeMoments<double>(means).variance;
}

PosteriorPoint Record(const PosteriorOptions& options, int samples,
                      const QuantileEnsemble& ensemble, const GaussianPosterior& posterior) {
  const Uncertainty uncertainty = ensemble.Decompose(options.data_mean);
  return {.samples = samples,
          .ensemble_mean = uncertainty.mean,
          .epistemic = uncertainty.epistemic,
          .means_variance = MeansVariance(options, ensemble),
          .aleatoric = uncertainty.aleatoric,
          .target_distance = std::sqrt(uncertainty.target_distance_sq),
          .bayes_mean = posterior.mean(),
          .bayes_variance = posterior.variance()};
}

void RecordQuantiles(const PosteriorOptions& options, const QuantileEnsemble& ensemble,
                     PosteriorTrace* trace) {
  std::vector<double> column(options.ensemble.members);
  for (std::size_t i = 0; i < options.ensemble.quantiles; ++i) {
    for (std::size_t k = 0; k < column.size(); ++k) {
      column[k] = ensemble.theta()[k * options.ensemble.quantiles + i];
    }
    const Moments moments = ComputeMoments<double>(column);
    trace->quantiles.push_back(moments.mean);
    trace->quantile_sds.push_back(std::sqrt(moments.variance));
  }
}

}  // namespace

GaussianPosterior::GaussianPosterior(const PosteriorOptions& options)
    : data_precision_(1 / (options.data_sd * options.data_sd)),
      precision_(1 / (options.prior_sd * options.prior_sd)),
      weighted_sum_(options.prior_mean * precision_) {}

void GaussianPosterior::Observe(double sample) {
  precision_ += data_precision_;
  weighted_sum_ += data_precision_ * sample;
}

std::vector<int> RecordTimes(int samples) {
  UPER_CHECK(samples >= 1, "at least one sample is needed");
  constexpr double kPerDecade = 40;
  std::vector<int> times = {0};
  for (int i = 0; times.back() < samples; ++i) {
    const int time = static_cast<int>(std::lround(std::pow(10.0, i / kPerDecade)));
    if (time > times.back()) times.push_back(std::min(time, samples));
  }
  return times;
}

PosteriorTrace SimulatePosterior(const PosteriorOptions& options, std::uint64_t seed) {
  RandomStream start(seed, "posterior start");
  RandomStream data(seed, "posterior data");
  RandomStream masks(seed, "posterior masks");
  QuantileEnsemble ensemble(options.ensemble);
  StartFromPrior(options, start, ensemble);
  GaussianPosterior posterior(options);
  PosteriorTrace trace;
  trace.bayes_means.push_back(posterior.mean());
  const std::uint64_t all_members = AllMembers(options.ensemble.members);
  int done = 0;
  for (const int time : RecordTimes(options.samples)) {
    for (; done < time; ++done) {
      const double sample = options.data_mean + options.data_sd * data.Normal();
      // Each bit is a fair coin: a member takes part with probability 1/2.
      ensemble.Update(sample, options.learning_rate.At(done), masks.NextUint64() & all_members);
      posterior.Observe(sample);
      trace.bayes_means.push_back(posterior.mean());
    }
    trace.points.push_back(Record(options, done, ensemble, posterior));
  }
  RecordQuantiles(options, ensemble, &trace);
  return trace;
}

}  // namespace uper::experiments::posterior
