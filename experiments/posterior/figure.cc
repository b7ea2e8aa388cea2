#include "experiments/posterior/figure.h"

#include "experiments/posterior/claims.h"
#include "experiments/posterior/model.h"
#include "uper/base/files/csv_writer.h"
#include "uper/core/quantile.h"

namespace uper::experiments::posterior {
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

std::vector<Claim> Run(const FigureContext& context) {
  const PosteriorOptions options = ReadOptions(context.settings);
  Traces traces(context.seeds);
  RunTasks(context, traces.size(),
           [&](std::size_t seed) { traces[seed] = SimulatePosterior(options, seed + 1); });
  WriteData(context, traces);
  WriteQuantiles(context, options, traces);
  return PosteriorClaims(options, traces);
}

}  // namespace

Figure MakeFigure() {
  return {.id = "posterior",
          .title = "An ensemble of quantile regressors against the Bayesian posterior of the mean",
          .default_seeds = 20,
          .settings = DeclareSettings(),
          .run = Run};
}

}  // namespace uper::experiments::posterior
