#include "experiments/posterior/claims.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "uper/base/check.h"
#include "uper/base/random.h"
#include "uper/core/moments.h"
#include "uper/core/quantile.h"

namespace uper::experiments::posterior {
namespace {

using TraceSpan = std::span<const PosteriorTrace>;  // [seed]

// One number per seed.
template <typename Statistic>
std::vector<double> EachSeed(TraceSpan traces, const Statistic& statistic) {
  std::vector<double> values;
  values.reserve(traces.size());
  for (const PosteriorTrace& trace : traces) values.push_back(statistic(trace));
  return values;
}

// The samples after which Bayes' mean is first within `tolerance` of the data's mean, or the number
// of samples + 1 if it never is. EnsembleTime() is the same for the ensemble's mean.
double BayesTime(const PosteriorOptions& options, const PosteriorTrace& trace, double tolerance) {
  const auto found =
      std::find_if(trace.bayes_means.begin(), trace.bayes_means.end(),
                   [&](double mean) { return std::abs(mean - options.data_mean) <= tolerance; });
  return static_cast<double>(found - trace.bayes_means.begin());
}

double EnsembleTime(const PosteriorOptions& options, const PosteriorTrace& trace,
                    double tolerance) {
  for (const PosteriorPoint& point : trace.points) {
    if (point.target_distance <= tolerance) return point.samples;
  }
  return options.samples + 1;
}

// Half way from the prior's mean to the data's: where the two time axes are made to meet.
double HalfWay(const PosteriorOptions& options) {
  return 0.5 * std::abs(options.data_mean - options.prior_mean);
}

// Bayes' mean after a number of samples that need not be whole.
double BayesMeanAt(const PosteriorTrace& trace, double samples) {
  const auto below = static_cast<std::size_t>(samples);
  const std::size_t above = std::min(below + 1, trace.bayes_means.size() - 1);
  const double fraction = samples - static_cast<double>(below);
  return trace.bayes_means[below] +
         fraction * (trace.bayes_means[above] - trace.bayes_means[below]);
}

// The two curves on one time axis: at each recorded time t of the ensemble, Bayes' value after
// t * scale samples, with scale such that both means are half way at the same moment.
struct PairedCurves {
  std::vector<double> ensemble;
  std::vector<double> bayes;
};

template <typename OfEnsemble, typename OfBayes>
PairedCurves Pair(const PosteriorOptions& options, const PosteriorTrace& trace,
                  const OfEnsemble& of_ensemble, const OfBayes& of_bayes) {
  const double half_way = HalfWay(options);
  const double scale = BayesTime(options, trace, half_way) / EnsembleTime(options, trace, half_way);
  PairedCurves curves;
  for (const PosteriorPoint& point : trace.points) {
    const double bayes_samples = point.samples * scale;
    if (bayes_samples > options.samples) break;
    curves.ensemble.push_back(of_ensemble(point));
    curves.bayes.push_back(of_bayes(bayes_samples));
  }
  return curves;
}

// Samples until E first is at most 1 % of its start; the number of samples if never.
double EpistemicTime(const PosteriorTrace& trace) {
  for (const PosteriorPoint& point : trace.points) {
    if (point.epistemic <= 0.01 * trace.points.front().epistemic) return point.samples;
  }
  return trace.points.back().samples;
}

// Variance that exact quantiles at the midpoints have, relative to the data's.
double MidpointVariance(std::size_t quantiles) {
  std::vector<double> values(quantiles);
  for (std::size_t i = 0; i < quantiles; ++i) {
    values[i] = NormalQuantile(QuantileMidpoint(i, quantiles));
  }
  return ComputeMoments<double>(values).variance;
}

// Correlation of the two means, at equal progress.
double MeanCorrelation(const PosteriorOptions& options, const PosteriorTrace& trace) {
  const PairedCurves curves = Pair(
      options, trace, [](const PosteriorPoint& p) { return p.ensemble_mean; },
      [&](double samples) { return BayesMeanAt(trace, samples); });
  return Correlation(curves.ensemble, curves.bayes);
}

// Correlation of the logarithms of the two posteriors' variances, at equal progress.
double WidthCorrelation(const PosteriorOptions& options, const PosteriorTrace& trace) {
  const double prior_precision = 1 / (options.prior_sd * options.prior_sd);
  const double data_precision = 1 / (options.data_sd * options.data_sd);
  const PairedCurves curves = Pair(
      options, trace, [](const PosteriorPoint& p) { return std::log(p.means_variance); },
      [&](double samples) { return -std::log(prior_precision + samples * data_precision); });
  return Correlation(curves.ensemble, curves.bayes);
}

// Claims 27a to 27c: ensemble and Bayesian model side by side.
std::vector<ClaimRow> TrendClaims(const PosteriorOptions& options, TraceSpan traces) {
  const std::string aligned =
      " over the recorded times (even in the logarithm), time scaled so that both means are half "
      "way from prior to data at the same moment, minus 0.9; > 0 supports it";
  const double tolerance = 0.1 * std::abs(options.data_mean - options.prior_mean);
  return {
      {{.id = "27a",
        .statement = "The posterior means of ensemble and Bayesian model show similar trends.",
        .where_in_paper = "L535",
        .statistic = "correlation of the two means" + aligned},
       Positive(EachSeed(
           traces, [&](const PosteriorTrace& t) { return MeanCorrelation(options, t) - 0.9; }))},
      {{.id = "27b",
        .statement = "So do the posteriors' widths, the members' means giving the ensemble's.",
        .where_in_paper = "L533, L535",
        .statistic =
            "correlation of ln(variance of the members' means) and ln(posterior variance)" +
            aligned},
       Positive(EachSeed(
           traces, [&](const PosteriorTrace& t) { return WidthCorrelation(options, t) - 0.9; }))},
      {{.id = "27c",
        .statement = "The Bayesian model converges faster to the mean.",
        .where_in_paper = "L535",
        .statistic = "ln(samples until the ensemble's mean is first within 10 % of the way / the "
                     "same of Bayes' mean); > 0 supports it"},
       Positive(EachSeed(traces, [&](const PosteriorTrace& t) {
         return std::log(EnsembleTime(options, t, tolerance) / BayesTime(options, t, tolerance));
       }))}};
}

// Claims 28a to 28d: the uncertainty about the mean vanishes.
std::vector<ClaimRow> VanishingClaims(const PosteriorOptions& options, TraceSpan traces) {
  const std::string fall = "ln(start / end) - ln 100; > 0 (falls below 1 %) supports it";
  // ln(start / end) - ln 100 of one field.
  const auto log_fall = [](const PosteriorTrace& trace, double PosteriorPoint::* field) {
    return std::log(trace.points.front().*field / trace.points.back().*field / 100);
  };
  const double bayes_fall = log_fall(traces.front(), &PosteriorPoint::bayes_variance);
  const double variance_ratio =
      (options.data_sd * options.data_sd) / (options.prior_sd * options.prior_sd);
  const double bayes_time = 99 * variance_ratio;  // posterior variance = 1 % of the prior's
  return {{{.id = "28a",
            .statement = "The ensemble's disagreement E goes to 0.",
            .where_in_paper = "L535",
            .statistic = "E, mean over quantiles of the variance over members: " + fall},
           Positive(EachSeed(traces,
                             [&](const PosteriorTrace& trace) {
                               return log_fall(trace, &PosteriorPoint::epistemic);
                             }))},
          {{.id = "28b",
            .statement = "The variance of the members' means goes to 0.",
            .where_in_paper = "L533, L535",
            .statistic = "variance of the members' means: " + fall},
           Positive(EachSeed(traces,
                             [&](const PosteriorTrace& trace) {
                               return log_fall(trace, &PosteriorPoint::means_variance);
                             }))},
          {{.id = "28c",
            .statement = "The posterior variance goes to 0.",
            .where_in_paper = "L535",
            .statistic = "posterior variance (does not depend on the data): " + fall},
           Exact(bayes_fall, bayes_fall > 0)},
          {{.id = "28d",
            .statement = "They go to 0 at different rates.",
            .where_in_paper = "L535",
            .statistic = "|ln(samples until E is 1 % of its start / samples until the posterior "
                         "variance is)| - ln 2; > 0 (a factor of more than 2) supports it"},
           Positive(EachSeed(traces, [&](const PosteriorTrace& trace) {
             return std::abs(std::log(EpistemicTime(trace) / bayes_time)) - std::log(2.0);
           }))}};
}

// By how much the fitted outermost quantiles are closer to each other than the true ones.
double MissedTails(const PosteriorOptions& options, const PosteriorTrace& trace) {
  const std::size_t last = options.ensemble.quantiles - 1;
  const double truth = TrueQuantile(options, last) - TrueQuantile(options, 0);
  return (truth - (trace.quantiles[last] - trace.quantiles[0])) / options.data_sd;
}

// Claims 29a to 29d: A against the variance of the data.
std::vector<ClaimRow> AleatoricClaims(const PosteriorOptions& options, TraceSpan traces) {
  const double data_variance = options.data_sd * options.data_sd;
  const double lost = 1 - MidpointVariance(options.ensemble.quantiles);
  return {{{.id = "29a",
            .statement = "A approximates the variance of the data well.",
            .where_in_paper = "L535",
            .statistic = "ln(A / data variance) at the end; within 0.1 supports it"},
           Within(EachSeed(traces,
                           [&](const PosteriorTrace& trace) {
                             return std::log(trace.points.back().aleatoric / data_variance);
                           }),
                  0.1)},
          {{.id = "29b",
            .statement = "A is slightly too low.",
            .where_in_paper = "L535",
            .statistic = "ln(data variance / A) at the end; > 0 supports it"},
           Positive(EachSeed(traces,
                             [&](const PosteriorTrace& trace) {
                               return std::log(data_variance / trace.points.back().aleatoric);
                             }))},
          {{.id = "29c",
            .statement = "The quantiles miss the tails.",
            .where_in_paper = "L535",
            .statistic = "distance between the true outermost quantiles minus that between the "
                         "fitted ones, in data standard deviations; > 0 supports it"},
           Positive(EachSeed(
               traces, [&](const PosteriorTrace& trace) { return MissedTails(options, trace); }))},
          {{.id = "29d",
            .statement = "Even exact quantiles at the midpoints underestimate the variance.",
            .where_in_paper = "L535",
            .statistic = "1 - variance of the data distribution's exact quantiles at the "
                         "midpoints, in data variances; > 0 supports it"},
           Exact(lost, lost > 0)}};
}

}  // namespace

double Correlation(std::span<const double> x, std::span<const double> y) {
  UPER_CHECK(!x.empty() && x.size() == y.size(), "a correlation needs pairs");
  const Moments mx = ComputeMoments(x);
  const Moments my = ComputeMoments(y);
  if (mx.variance == 0 || my.variance == 0) return 0;
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += (x[i] - mx.mean) * (y[i] - my.mean);
  return sum / static_cast<double>(x.size()) / std::sqrt(mx.variance * my.variance);
}

double TrueQuantile(const PosteriorOptions& options, std::size_t i) {
  return options.data_mean +
         options.data_sd * NormalQuantile(QuantileMidpoint(i, options.ensemble.quantiles));
}

std::vector<Claim> PosteriorClaims(const PosteriorOptions& options, TraceSpan traces) {
  std::vector<ClaimRow> table = TrendClaims(options, traces);
  for (std::vector<ClaimRow>& rows :
       std::array{VanishingClaims(options, traces), AleatoricClaims(options, traces)}) {
    for (ClaimRow& row : rows) table.push_back(std::move(row));
  }
  return TestClaims(table);
}

}  // namespace uper::experiments::posterior
