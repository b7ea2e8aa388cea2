#include "experiments/bias/bias_study.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "uper/base/files/csv_writer.h"

namespace uper::experiments {
namespace {

std::string PanelId(const std::string& id, std::size_t panel) {
  return id + "." + static_cast<char>('a' + panel);
}

ClaimText ForPanel(ClaimText text, std::size_t panel) {
  text.id = PanelId(text.id, panel);
  text.statistic = std::string("panel ") + static_cast<char>('a' + panel) + ": " + text.statistic;
  return text;
}

ClaimText ForAllPanels(ClaimText text, const std::string& which) {
  text.statistic = which + " of the panels a-h, each seed: " + text.statistic;
  return text;
}

std::vector<double> OfPanel(const PanelStatistic& statistic, std::size_t panel, std::size_t seeds) {
  std::vector<double> values(seeds);
  for (std::size_t seed = 0; seed < seeds; ++seed) values[seed] = statistic(panel, seed);
  return values;
}

}  // namespace

std::vector<SettingInfo> BiasSettings(int intervals, double largest_bias) {
  using Type = SettingInfo::Type;
  return {{.key = "entries",
           .type = Type::kInteger,
           .default_text = "100000",
           .description = "entries N of the replay memory",
           .low = 2,
           .high = 1e7,
           .choices = {}},
          {.key = "intervals",
           .type = Type::kInteger,
           .default_text = std::to_string(intervals),
           .description = "steps of the bias axis; a multiple of 10 puts every claim on a point",
           .low = 10,
           .high = 10'000,
           .choices = {}},
          {.key = "largest_bias",
           .type = Type::kNumber,
           .default_text = NumberText(largest_bias),
           .description = "end of the bias axis",
           .low = 1e-6,
           .high = 1e6,
           .choices = {}},
          {.key = "normal_parameter",
           .type = Type::kChoice,
           .default_text = "sd",
           .description = "whether the 3 of the paper's N(0,3) is a standard deviation or variance",
           .choices = {"sd", "variance"}}};
}

BiasOptions ReadBiasOptions(const Settings& settings) {
  const bool variance = settings.Text("normal_parameter") == "variance";
  BiasOptions options{.entries = static_cast<std::size_t>(settings.Integer("entries")),
                      .panels = BiasPanels(variance ? std::sqrt(3.0) : 3.0),
                      .biases = {}};
  const int intervals = settings.Integer("intervals");
  const double largest = settings.Number("largest_bias");
  for (int i = 0; i <= intervals; ++i) options.biases.push_back(largest * i / intervals);
  return options;
}

void ForEachBiasMemory(
    const FigureContext& context, const BiasOptions& options,
    const std::function<void(std::size_t, std::size_t, const BiasEntries&)>& work) {
  const std::size_t panels = options.panels.size();
  RunTasks(context, panels * context.seeds, [&](std::size_t task) {
    const std::size_t panel = task % panels;
    const std::size_t seed = task / panels;
    work(panel, seed, DrawBiasEntries(options.panels[panel], options.entries, seed + 1));
  });
}

void WriteBiasPanels(const FigureContext& context, const BiasOptions& options) {
  CsvWriter csv(context.folder / "panels.csv",
                {"panel", "eta_family", "eta_scale", "beta_family", "beta_scale", "entries"});
  for (const BiasPanel& panel : options.panels) {
    csv.Row(std::string(1, panel.letter), panel.eta.FamilyName(), panel.eta.scale,
            panel.beta.FamilyName(), panel.beta.scale, options.entries);
  }
  csv.Commit();
}

std::vector<double> SmallestPanel(const PanelStatistic& statistic, std::size_t panels,
                                  std::size_t seeds) {
  std::vector<double> smallest(seeds, std::numeric_limits<double>::infinity());
  for (std::size_t seed = 0; seed < seeds; ++seed) {
    for (std::size_t panel = 0; panel < panels; ++panel) {
      smallest[seed] = std::min(smallest[seed], statistic(panel, seed));
    }
  }
  return smallest;
}

void ClaimPositiveInAllPanels(const ClaimText& text, const PanelStatistic& statistic,
                              std::size_t panels, std::size_t seeds, std::vector<Claim>* claims) {
  claims->push_back(
      ClaimPositive(ForAllPanels(text, "smallest"), SmallestPanel(statistic, panels, seeds)));
}

void ClaimPositiveInPanels(const ClaimText& text, const PanelStatistic& statistic,
                           std::size_t panels, std::size_t seeds, std::vector<Claim>* claims) {
  ClaimPositiveInAllPanels(text, statistic, panels, seeds, claims);
  for (std::size_t panel = 0; panel < panels; ++panel) {
    claims->push_back(ClaimPositive(ForPanel(text, panel), OfPanel(statistic, panel, seeds)));
  }
}

void ClaimWithinInPanels(const ClaimText& text, const PanelStatistic& statistic, double margin,
                         std::size_t panels, std::size_t seeds, std::vector<Claim>* claims) {
  const auto negative_size = [&](std::size_t panel, std::size_t seed) {
    return -std::abs(statistic(panel, seed));
  };
  std::vector<double> largest = SmallestPanel(negative_size, panels, seeds);
  for (double& value : largest) value = -value;
  claims->push_back(ClaimWithin(ForAllPanels(text, "largest size"), largest, margin));
  for (std::size_t panel = 0; panel < panels; ++panel) {
    claims->push_back(ClaimWithin(ForPanel(text, panel), OfPanel(statistic, panel, seeds), margin));
  }
}

}  // namespace uper::experiments
