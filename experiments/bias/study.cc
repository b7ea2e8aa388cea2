#include "experiments/bias/study.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "uper/base/files/csv_writer.h"

namespace uper::experiments::bias {
namespace {

ClaimText ForPanel(ClaimText text, std::size_t panel) {
  const char letter = static_cast<char>('a' + panel);
  text.id += std::string(".") + letter;
  text.statistic = std::string("panel ") + letter + ": " + text.statistic;
  return text;
}

ClaimText ForAllPanels(ClaimText text, const std::string& which) {
  text.statistic = which + " of the panels a-h, each seed: " + text.statistic;
  return text;
}

// The statistic's values of one panel, [seed].
std::vector<double> OfPanel(const PanelGrid& grid, const PanelStatistic& statistic,
                            std::size_t panel) {
  std::vector<double> values(grid.seeds);
  for (std::size_t seed = 0; seed < grid.seeds; ++seed) values[seed] = statistic(panel, seed);
  return values;
}

}  // namespace

std::vector<SettingInfo> BiasSettings(int intervals, double largest_bias) {
  using enum SettingInfo::Type;
  return {NumberSetting("entries", kInteger, 100'000, 2, 1e7, "entries N of the replay memory"),
          NumberSetting("intervals", kInteger, intervals, 10, 10'000,
                        "steps of the bias axis; a multiple of 10 puts every claim on a point"),
          NumberSetting("largest_bias", kNumber, largest_bias, 1e-6, 1e6, "end of the bias axis"),
          {.key = "normal_parameter",
           .type = kChoice,
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

void WriteClosedForm(const FigureContext& context, const BiasOptions& options,
                     const ClosedFormColumns& columns) {
  CsvWriter csv(context.folder / "closed_form.csv",
                {"panel", "form", "bias", "simulated", "population", "large_bias"});
  const double n = static_cast<double>(options.entries);
  for (std::size_t panel = 0; panel < options.panels.size(); ++panel) {
    const BiasPanel& densities = options.panels[panel];
    for (std::size_t i = 0; i < options.biases.size(); ++i) {
      const double bias = options.biases[i];
      const PerForm population = IntegrateBias(densities, bias, n).*columns.closed_form;
      const PerForm expansion = LargeBias(densities, bias, n).*columns.closed_form;
      for (std::size_t form = 0; form < kBiasForms; ++form) {
        double sum = 0;
        for (std::size_t seed = 0; seed < columns.seeds; ++seed) {
          sum += columns.simulated(panel, seed, i, form);
        }
        csv.Row(std::string(1, densities.letter), kBiasFormNames[form], bias,
                sum / static_cast<double>(columns.seeds), population[form],
                bias >= 1 ? expansion[form] : std::numeric_limits<double>::quiet_NaN());
      }
    }
  }
  csv.Commit();
}

std::vector<double> SmallestPanel(const PanelGrid& grid, const PanelStatistic& statistic) {
  std::vector<double> smallest(grid.seeds, std::numeric_limits<double>::infinity());
  for (std::size_t seed = 0; seed < grid.seeds; ++seed) {
    for (std::size_t panel = 0; panel < grid.panels; ++panel) {
      smallest[seed] = std::min(smallest[seed], statistic(panel, seed));
    }
  }
  return smallest;
}

std::vector<double> LargestPanel(const PanelGrid& grid, const PanelStatistic& statistic) {
  std::vector<double> largest = SmallestPanel(
      grid, [&](std::size_t panel, std::size_t seed) { return -statistic(panel, seed); });
  for (double& value : largest) value = -value;
  return largest;
}

ClaimTest PositiveInAllPanels(const PanelGrid& grid, const PanelStatistic& statistic) {
  return [=](const ClaimText& text) {
    return std::vector{
        ClaimPositive(ForAllPanels(text, "smallest"), SmallestPanel(grid, statistic))};
  };
}

ClaimTest PositiveInPanels(const PanelGrid& grid, const PanelStatistic& statistic) {
  return [=](const ClaimText& text) {
    std::vector<Claim> claims = PositiveInAllPanels(grid, statistic)(text);
    for (std::size_t panel = 0; panel < grid.panels; ++panel) {
      claims.push_back(ClaimPositive(ForPanel(text, panel), OfPanel(grid, statistic, panel)));
    }
    return claims;
  };
}

ClaimTest WithinInPanels(const PanelGrid& grid, const PanelStatistic& statistic, double margin) {
  return [=](const ClaimText& text) {
    const auto size = [&](std::size_t panel, std::size_t seed) {
      return std::abs(statistic(panel, seed));
    };
    std::vector<Claim> claims = {
        ClaimWithin(ForAllPanels(text, "largest size"), LargestPanel(grid, size), margin)};
    for (std::size_t panel = 0; panel < grid.panels; ++panel) {
      claims.push_back(ClaimWithin(ForPanel(text, panel), OfPanel(grid, statistic, panel), margin));
    }
    return claims;
  };
}

}  // namespace uper::experiments::bias
