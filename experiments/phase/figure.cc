#include "experiments/phase/figure.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>

#include "uper/base/error.h"
#include "uper/base/files/csv_writer.h"

namespace uper::experiments::phase {
namespace {

constexpr std::array kRules = {PriorityRule::kInfoGain, PriorityRule::kRatioEa,
                               PriorityRule::kRatioEu,  PriorityRule::kRatioE2u,
                               PriorityRule::kRatioE3u, PriorityRule::kEpistemic,
                               PriorityRule::kTotal};

// A smaller elasticity comes from the floor under A and from rounding: the priority is constant.
constexpr double kConstant = 1e-6;

std::vector<SettingInfo> DeclareSettings() {
  using Type = SettingInfo::Type;
  return {NumberSetting("points", Type::kInteger, 61, 2, 1000, "grid points of E and of A"),
          NumberSetting("low", Type::kNumber, 0.01, 1e-3, 1e3, "smallest E and A"),
          NumberSetting("high", Type::kNumber, 100, 1e-3, 1e3, "largest E and A; above `low`"),
          {.key = "axis",
           .type = Type::kChoice,
           .default_text = "log",
           .description = "whether the grid is even in the logarithm or in the value",
           .choices = {"log", "linear"}}};
}

std::vector<double> MakeGrid(const Settings& settings) {
  const int points = settings.Integer("points");
  const double low = settings.Number("low");
  const double high = settings.Number("high");
  if (high <= low) {
    throw Error(ErrorKind::kUsage, "setting 'high' must be larger than 'low' (" + NumberText(high) +
                                       " is not above " + NumberText(low) + ")");
  }
  const bool logarithmic = settings.Text("axis") == "log";
  std::vector<double> grid(points);
  for (int i = 0; i < points; ++i) {
    const double share = static_cast<double>(i) / (points - 1);
    grid[i] = logarithmic ? low * std::pow(high / low, share) : low + (high - low) * share;
  }
  return grid;
}

void WriteData(const FigureContext& context, std::span<const double> grid) {
  CsvWriter csv(context.folder / "data.csv", {"rule", "epistemic", "aleatoric", "priority"});
  CsvWriter elasticity(context.folder / "elasticity.csv", {"rule", "smallest", "largest"});
  for (const PriorityRule rule : kRules) {
    for (const double epistemic : grid) {
      for (const double aleatoric : grid) {
        csv.Row(PriorityRuleName(rule), epistemic, aleatoric,
                PhasePriority(rule, epistemic, aleatoric));
      }
    }
    const ElasticityRange range = DiagonalElasticities(rule, grid);
    elasticity.Row(PriorityRuleName(rule), range.smallest, range.largest);
  }
  csv.Commit();
  elasticity.Commit();
}

std::string ElasticityText(const std::string& what, const std::string& side) {
  return what +
         " over the grid of d ln p(sE, sA) / d ln s, the change along a line of equal ratio; " +
         side + " supports it";
}

Claim ClaimNotConstant(const std::string& id, const std::string& form, PriorityRule rule,
                       std::span<const double> grid) {
  const ElasticityRange range = DiagonalElasticities(rule, grid);
  const double size = std::max(std::abs(range.smallest), std::abs(range.largest));
  return ClaimExact(
      {.id = id,
       .statement = form + " is not constant along the diagonal of the phase diagram.",
       .where_in_paper = "L541",
       .statistic = ElasticityText("largest size", "> 1e-6")},
      size, size > kConstant);
}

Claim ClaimPrefersLow(const std::string& id, const std::string& form, PriorityRule rule,
                      std::span<const double> grid) {
  const double largest = DiagonalElasticities(rule, grid).largest;
  return ClaimExact(
      {.id = id,
       .statement = form + " prefers low epistemic uncertainty at equal ratio of E and A.",
       .where_in_paper = "L541",
       .statistic = ElasticityText("largest value", "< -1e-6 (falls everywhere)")},
      largest, largest < -kConstant);
}

Claim ClaimConstant(const std::string& id, const std::string& form, PriorityRule rule,
                    std::span<const double> grid) {
  const ElasticityRange range = DiagonalElasticities(rule, grid);
  const double size = std::max(std::abs(range.smallest), std::abs(range.largest));
  return ClaimExact({.id = id,
                     .statement = form + ", the form they are compared with, is constant along it.",
                     .where_in_paper = "L541",
                     .statistic = ElasticityText("largest size", "<= 1e-6")},
                    size, size <= kConstant);
}

std::vector<Claim> Run(const FigureContext& context) {
  const std::vector<double> grid = MakeGrid(context.settings);
  RunTasks(context, 1, [&](std::size_t) { WriteData(context, grid); });
  return {ClaimNotConstant("38a", "E/U", PriorityRule::kRatioEu, grid),
          ClaimPrefersLow("38b", "E/U", PriorityRule::kRatioEu, grid),
          ClaimNotConstant("38c", "E^2/U", PriorityRule::kRatioE2u, grid),
          ClaimPrefersLow("38d", "E^2/U", PriorityRule::kRatioE2u, grid),
          ClaimConstant("38e", "E/A", PriorityRule::kRatioEa, grid)};
}

}  // namespace

std::span<const PriorityRule> PhaseRules() { return kRules; }

double PhasePriority(PriorityRule rule, double epistemic, double aleatoric) {
  PriorityInputs inputs;
  inputs.uncertainty.epistemic = epistemic;
  inputs.uncertainty.aleatoric = aleatoric;
  inputs.uncertainty.total = epistemic + aleatoric;
  return ComputePriority(rule, inputs, {.aleatoric_floor = 1e-12, .cap = 1e12}).value;
}

double DiagonalElasticity(PriorityRule rule, double epistemic, double aleatoric) {
  return std::log2(PhasePriority(rule, 2 * epistemic, 2 * aleatoric) /
                   PhasePriority(rule, epistemic, aleatoric));
}

ElasticityRange DiagonalElasticities(PriorityRule rule, std::span<const double> grid) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  ElasticityRange range{.smallest = kInfinity, .largest = -kInfinity};
  for (const double epistemic : grid) {
    for (const double aleatoric : grid) {
      const double elasticity = DiagonalElasticity(rule, epistemic, aleatoric);
      range.smallest = std::min(range.smallest, elasticity);
      range.largest = std::max(range.largest, elasticity);
    }
  }
  return range;
}

Figure MakeFigure() {
  return {.id = "phase",
          .title = "Each uncertainty-based priority over epistemic and aleatoric uncertainty",
          .default_seeds = 1,
          .settings = DeclareSettings(),
          .run = Run};
}

}  // namespace uper::experiments::phase
