#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "experiments/bias/closed_form.h"
#include "experiments/bias/model.h"
#include "experiments/framework/claim.h"
#include "experiments/framework/figure.h"

namespace uper::experiments::bias {

// The parts that both bias figures share: settings, the sweep over panels and seeds, CSV files,
// and claims about panels.

// Settings of a figure whose axis runs over C = 0..largest_bias in `intervals` steps.
std::vector<SettingInfo> BiasSettings(int intervals, double largest_bias);

// The values of these settings.
struct BiasOptions {
  std::size_t entries = 100'000;
  std::array<BiasPanel, 8> panels = BiasPanels();
  std::vector<double> biases;  // ascending from 0
};
BiasOptions ReadBiasOptions(const Settings& settings);

// Result[panel, seed, position on the bias axis].
template <typename Result>
class BiasTable {
 public:
  BiasTable(std::size_t panels, std::size_t seeds, std::size_t biases)
      : panels_(panels), seeds_(seeds), biases_(biases), results_(panels * seeds * biases) {}

  Result& At(std::size_t panel, std::size_t seed, std::size_t bias) {
    return results_[(panel * seeds_ + seed) * biases_ + bias];
  }
  const Result& At(std::size_t panel, std::size_t seed, std::size_t bias) const {
    return results_[(panel * seeds_ + seed) * biases_ + bias];
  }
  std::size_t panels() const { return panels_; }
  std::size_t seeds() const { return seeds_; }
  std::size_t biases() const { return biases_; }

 private:
  std::size_t panels_;
  std::size_t seeds_;
  std::size_t biases_;
  std::vector<Result> results_;
};

// Calls work(panel index, seed index, entries) once for each pair, on the context's threads. Seeds
// are counted from 0 here, and from 1 in stream names and files.
void ForEachBiasMemory(
    const FigureContext& context, const BiasOptions& options,
    const std::function<void(std::size_t, std::size_t, const BiasEntries&)>& work);

// panels.csv: the two densities of each panel.
void WriteBiasPanels(const FigureContext& context, const BiasOptions& options);

// closed_form.csv: the mean over seeds, the large-N value and the large-C expansion (from C = 1).
// `simulated` gives a form's value for one panel, seed and position on the axis. `closed_form`
// chooses the field of BiasPopulation to compare with.
struct ClosedFormColumns {
  std::size_t seeds = 0;
  std::function<double(std::size_t panel, std::size_t seed, std::size_t bias, std::size_t form)>
      simulated;
  PerForm BiasPopulation::* closed_form = nullptr;
};
void WriteClosedForm(const FigureContext& context, const BiasOptions& options,
                     const ClosedFormColumns& columns);

// How many panels and seeds there are, and a number for each pair.
struct PanelGrid {
  std::size_t panels = 0;
  std::size_t seeds = 0;
};
using PanelStatistic = std::function<double(std::size_t panel, std::size_t seed)>;

// The smallest and the largest of the panels' values, for each seed.
std::vector<double> SmallestPanel(const PanelGrid& grid, const PanelStatistic& statistic);
std::vector<double> LargestPanel(const PanelGrid& grid, const PanelStatistic& statistic);

// Tests of a statement about every panel. The claim itself is about the worst panel of each seed.
// The InPanels tests add one claim per panel, named text.id + ".a" ... ".h".
ClaimTest PositiveInAllPanels(const PanelGrid& grid, const PanelStatistic& statistic);
ClaimTest PositiveInPanels(const PanelGrid& grid, const PanelStatistic& statistic);
ClaimTest WithinInPanels(const PanelGrid& grid, const PanelStatistic& statistic, double margin);

}  // namespace uper::experiments::bias
