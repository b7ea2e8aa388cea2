#include "experiments/posterior/figure.h"

#include <algorithm>
#include <cmath>

#include "experiments/posterior/model.h"
#include "uper/base/check.h"
#include "uper/base/files/csv_writer.h"
#include "uper/base/random.h"
#include "uper/core/moments.h"
#include "uper/core/quantile.h"

namespace uper::experiments {
namespace {

using Traces = std::vector<PosteriorTrace>;  // [seed]

std::vector<SettingInfo> DeclareSettings() {
  using Type = SettingInfo::Type;
  const PosteriorOptions defaults;
  return {NumberSetting("members", Type::kInteger, 50, 2, 64, "regressors in the ensemble"),
          NumberSetting("quantiles", Type::kInteger, 30, 2, 1000, "quantiles of each regressor"),
          NumberSetting("learning_rate", Type::kNumber, defaults.learning_rate.initial, 1e-9, 1,
                        "first step of the quantile regression"),
          NumberSetting("half_life", Type::kNumber, defaults.learning_rate.half_life, 1, 1e12,
                        "samples after which the step is halved; 1e12 for a constant step"),
          NumberSetting("initial_spread", Type::kNumber, defaults.initial_spread, 0, 1e3,
                        "a regressor starts evenly spaced over its mean +- this"),
          NumberSetting("samples", Type::kInteger, defaults.samples, 1000, 1e7,
                        "samples of the data distribution")};
}

PosteriorOptions ReadOptions(const Settings& settings) {
  PosteriorOptions options;
  options.ensemble = {.members = static_cast<std::size_t>(settings.Integer("members")),
                      .quantiles = static_cast<std::size_t>(settings.Integer("quantiles"))};
  options.learning_rate = {.initial = settings.Number("learning_rate"),
                           .half_life = settings.Number("half_life")};
  options.initial_spread = settings.Number("initial_spread");
  options.samples = settings.Integer("samples");
  return options;
}

void WriteData(const FigureContext& context, const Traces& traces) {
  CsvWriter csv(context.folder / "data.csv",
                {"seed", "samples", "ensemble_mean", "epistemic", "means_variance", "aleatoric",
                 "target_distance", "bayes_mean", "bayes_variance"});
  for (std::size_t seed = 0; seed < traces.size(); ++seed) {
    for (const PosteriorPoint& p : traces[seed].points) {
      csv.Row(seed + 1, p.samples, p.ensemble_mean, p.epistemic, p.means_variance, p.aleatoric,
              p.target_distance, p.bayes_mean, p.bayes_variance);
    }
  }
  csv.Commit();
}

double TrueQuantile(const PosteriorOptions& options, std::size_t i) {
  return options.data_mean +
         options.data_sd * NormalQuantile(QuantileMidpoint(i, options.ensemble.quantiles));
}

void WriteQuantiles(const FigureContext& context, const PosteriorOptions& options,
                    const Traces& traces) {
  CsvWriter csv(context.folder / "quantiles.csv",
                {"seed", "quantile", "tau", "estimate", "member_sd", "truth"});
  for (std::size_t seed = 0; seed < traces.size(); ++seed) {
    for (std::size_t i = 0; i < options.ensemble.quantiles; ++i) {
      csv.Row(seed + 1, i, QuantileMidpoint(i, options.ensemble.quantiles),
              traces[seed].quantiles[i], traces[seed].quantile_sds[i], TrueQuantile(options, i));
    }
  }
  csv.Commit();
}

// One number a seed.
template <typename Statistic>
std::vector<double> EachSeed(const Traces& traces, const Statistic& statistic) {
  std::vector<double> values;
  values.reserve(traces.size());
  for (const PosteriorTrace& trace : traces) values.push_back(statistic(trace));
  return values;
}

// Samples after which Bayes' mean, respectively the ensemble's, first is within `tolerance` of the
// data's mean; the number of samples + 1 if never.
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

void ClaimTrends(const PosteriorOptions& options, const Traces& traces,
                 std::vector<Claim>* claims) {
  const std::string aligned =
      " over the recorded times (even in the logarithm), time scaled so that both means are half "
      "way from prior to data at the same moment, minus 0.9; > 0 supports it";
  claims->push_back(ClaimPositive(
      {.id = "27a",
       .statement = "The posterior means of ensemble and Bayesian model show similar trends.",
       .where_in_paper = "L535",
       .statistic = "correlation of the two means" + aligned},
      EachSeed(traces, [&](const PosteriorTrace& trace) {
        const PairedCurves curves = Pair(
            options, trace, [](const PosteriorPoint& p) { return p.ensemble_mean; },
            [&](double samples) { return BayesMeanAt(trace, samples); });
        return Correlation(curves.ensemble, curves.bayes) - 0.9;
      })));
  const double prior_precision = 1 / (options.prior_sd * options.prior_sd);
  const double data_precision = 1 / (options.data_sd * options.data_sd);
  claims->push_back(ClaimPositive(
      {.id = "27b",
       .statement = "So do the posteriors' widths, the members' means giving the ensemble's.",
       .where_in_paper = "L533, L535",
       .statistic = "correlation of ln(variance of the members' means) and ln(posterior variance)" +
                    aligned},
      EachSeed(traces, [&](const PosteriorTrace& trace) {
        const PairedCurves curves = Pair(
            options, trace, [](const PosteriorPoint& p) { return std::log(p.means_variance); },
            [&](double samples) { return -std::log(prior_precision + samples * data_precision); });
        return Correlation(curves.ensemble, curves.bayes) - 0.9;
      })));
}

void ClaimBayesFaster(const PosteriorOptions& options, const Traces& traces,
                      std::vector<Claim>* claims) {
  const double tolerance = 0.1 * std::abs(options.data_mean - options.prior_mean);
  claims->push_back(ClaimPositive(
      {.id = "27c",
       .statement = "The Bayesian model converges faster to the mean.",
       .where_in_paper = "L535",
       .statistic = "ln(samples until the ensemble's mean is first within 10 % of the way / the "
                    "same of Bayes' mean); > 0 supports it"},
      EachSeed(traces, [&](const PosteriorTrace& trace) {
        return std::log(EnsembleTime(options, trace, tolerance) /
                        BayesTime(options, trace, tolerance));
      })));
}

// Samples until E first is at most 1 % of its start; the number of samples if never.
double EpistemicTime(const PosteriorTrace& trace) {
  for (const PosteriorPoint& point : trace.points) {
    if (point.epistemic <= 0.01 * trace.points.front().epistemic) return point.samples;
  }
  return trace.points.back().samples;
}

void ClaimVanishing(const PosteriorOptions& options, const Traces& traces,
                    std::vector<Claim>* claims) {
  const std::string fall = "ln(start / end) - ln 100; > 0 (falls below 1 %) supports it";
  const auto log_fall = [](double start, double end) { return std::log(start / end / 100); };
  claims->push_back(ClaimPositive(
      {.id = "28a",
       .statement = "The ensemble's disagreement E goes to 0.",
       .where_in_paper = "L535",
       .statistic = "E, mean over quantiles of the variance over members: " + fall},
      EachSeed(traces, [&](const PosteriorTrace& trace) {
        return log_fall(trace.points.front().epistemic, trace.points.back().epistemic);
      })));
  claims->push_back(ClaimPositive({.id = "28b",
                                   .statement = "The variance of the members' means goes to 0.",
                                   .where_in_paper = "L533, L535",
                                   .statistic = "variance of the members' means: " + fall},
                                  EachSeed(traces, [&](const PosteriorTrace& trace) {
                                    return log_fall(trace.points.front().means_variance,
                                                    trace.points.back().means_variance);
                                  })));
  const PosteriorPoint& start = traces.front().points.front();
  const PosteriorPoint& end = traces.front().points.back();
  const double bayes_fall = log_fall(start.bayes_variance, end.bayes_variance);
  claims->push_back(
      ClaimExact({.id = "28c",
                  .statement = "The posterior variance goes to 0.",
                  .where_in_paper = "L535",
                  .statistic = "posterior variance (does not depend on the data): " + fall},
                 bayes_fall, bayes_fall > 0));
  const double variance_ratio =
      (options.data_sd * options.data_sd) / (options.prior_sd * options.prior_sd);
  const double bayes_time = 99 * variance_ratio;  // posterior variance = 1 % of the prior's
  claims->push_back(ClaimPositive(
      {.id = "28d",
       .statement = "They go to 0 at different rates.",
       .where_in_paper = "L535",
       .statistic = "|ln(samples until E is 1 % of its start / samples until the posterior "
                    "variance is)| - ln 2; > 0 (a factor of more than 2) supports it"},
      EachSeed(traces, [&](const PosteriorTrace& trace) {
        return std::abs(std::log(EpistemicTime(trace) / bayes_time)) - std::log(2.0);
      })));
}

// Variance that exact quantiles at the midpoints have, relative to the data's.
double MidpointVariance(std::size_t quantiles) {
  std::vector<double> values(quantiles);
  for (std::size_t i = 0; i < quantiles; ++i) {
    values[i] = NormalQuantile(QuantileMidpoint(i, quantiles));
  }
  return ComputeMoments<double>(values).variance;
}

void ClaimAleatoric(const PosteriorOptions& options, const Traces& traces,
                    std::vector<Claim>* claims) {
  const double data_variance = options.data_sd * options.data_sd;
  claims->push_back(
      ClaimWithin({.id = "29a",
                   .statement = "A approximates the variance of the data well.",
                   .where_in_paper = "L535",
                   .statistic = "ln(A / data variance) at the end; within 0.1 supports it"},
                  EachSeed(traces,
                           [&](const PosteriorTrace& trace) {
                             return std::log(trace.points.back().aleatoric / data_variance);
                           }),
                  0.1));
  claims->push_back(
      ClaimPositive({.id = "29b",
                     .statement = "A is slightly too low.",
                     .where_in_paper = "L535",
                     .statistic = "ln(data variance / A) at the end; > 0 supports it"},
                    EachSeed(traces, [&](const PosteriorTrace& trace) {
                      return std::log(data_variance / trace.points.back().aleatoric);
                    })));
  claims->push_back(ClaimPositive(
      {.id = "29c",
       .statement = "The quantiles miss the tails.",
       .where_in_paper = "L535",
       .statistic = "distance between the true outermost quantiles minus that between the fitted "
                    "ones, in data standard deviations; > 0 supports it"},
      EachSeed(traces, [&](const PosteriorTrace& trace) {
        const std::size_t last = options.ensemble.quantiles - 1;
        const double truth = TrueQuantile(options, last) - TrueQuantile(options, 0);
        return (truth - (trace.quantiles[last] - trace.quantiles[0])) / options.data_sd;
      })));
  const double lost = 1 - MidpointVariance(options.ensemble.quantiles);
  claims->push_back(ClaimExact(
      {.id = "29d",
       .statement = "Even exact quantiles at the midpoints underestimate the variance.",
       .where_in_paper = "L535",
       .statistic = "1 - variance of the data distribution's exact quantiles at the midpoints, in "
                    "data variances; > 0 supports it"},
      lost, lost > 0));
}

std::vector<Claim> Run(const FigureContext& context) {
  const PosteriorOptions options = ReadOptions(context.settings);
  Traces traces(context.seeds);
  RunTasks(context, traces.size(),
           [&](std::size_t seed) { traces[seed] = SimulatePosterior(options, seed + 1); });
  WriteData(context, traces);
  WriteQuantiles(context, options, traces);
  std::vector<Claim> claims;
  ClaimTrends(options, traces, &claims);
  ClaimBayesFaster(options, traces, &claims);
  ClaimVanishing(options, traces, &claims);
  ClaimAleatoric(options, traces, &claims);
  return claims;
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

Figure PosteriorFigure() {
  return {.id = "posterior",
          .title = "An ensemble of quantile regressors against the Bayesian posterior of the mean",
          .default_seeds = 20,
          .settings = DeclareSettings(),
          .run = Run};
}

}  // namespace uper::experiments
