#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "experiments/bias/bias_model.h"
#include "experiments/framework/claim.h"
#include "experiments/framework/figure.h"

namespace uper::experiments {

// What both bias figures share: settings, the sweep over panels and seeds, files, panel claims.

// Settings of a figure whose axis runs over C = 0..largest_bias in `intervals` steps.
std::vector<SettingInfo> BiasSettings(int intervals, double largest_bias);

// The settings, read.
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
      : seeds_(seeds), biases_(biases), results_(panels * seeds * biases) {}

  Result& At(std::size_t panel, std::size_t seed, std::size_t bias) {
    return results_[(panel * seeds_ + seed) * biases_ + bias];
  }
  const Result& At(std::size_t panel, std::size_t seed, std::size_t bias) const {
    return results_[(panel * seeds_ + seed) * biases_ + bias];
  }
  std::size_t seeds() const { return seeds_; }
  std::size_t biases() const { return biases_; }

 private:
  std::size_t seeds_;
  std::size_t biases_;
  std::vector<Result> results_;
};

// Calls work(panel index, seed index, entries) once for each, on the context's threads. Seeds are
// numbered from 0 here and from 1 in names and files.
void ForEachBiasMemory(
    const FigureContext& context, const BiasOptions& options,
    const std::function<void(std::size_t, std::size_t, const BiasEntries&)>& work);

// panels.csv: which densities each panel has.
void WriteBiasPanels(const FigureContext& context, const BiasOptions& options);

// A number for one panel and seed.
using PanelStatistic = std::function<double(std::size_t panel, std::size_t seed)>;

// "In every panel": claims that the smallest panel of each seed has a positive mean over seeds.
void ClaimPositiveInAllPanels(const ClaimText& text, const PanelStatistic& statistic,
                              std::size_t panels, std::size_t seeds, std::vector<Claim>* claims);
// That, and the same of each panel alone as text.id + ".a" ... ".h".
void ClaimPositiveInPanels(const ClaimText& text, const PanelStatistic& statistic,
                           std::size_t panels, std::size_t seeds, std::vector<Claim>* claims);
// The same for |statistic| <= margin, with the largest panel of each seed in text.id.
void ClaimWithinInPanels(const ClaimText& text, const PanelStatistic& statistic, double margin,
                         std::size_t panels, std::size_t seeds, std::vector<Claim>* claims);

// The smallest of the panels' values, for each seed.
std::vector<double> SmallestPanel(const PanelStatistic& statistic, std::size_t panels,
                                  std::size_t seeds);

}  // namespace uper::experiments
