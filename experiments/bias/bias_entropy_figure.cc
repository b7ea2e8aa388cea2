#include "experiments/bias/bias_entropy_figure.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "experiments/bias/bias_closed_form.h"
#include "experiments/bias/bias_study.h"
#include "uper/base/files/csv_writer.h"

namespace uper::experiments {
namespace {

// Far beyond every density's scale: the "limit of large C".
constexpr double kLargeBias = 100;

struct EntropyResults {
  BiasOptions options;
  BiasTable<PerForm> curves;      // at options.biases
  BiasTable<PerForm> large_bias;  // at kLargeBias, one position

  double log_entries() const { return std::log(static_cast<double>(options.entries)); }
  std::size_t last() const { return options.biases.size() - 1; }
  double H(std::size_t panel, std::size_t seed, std::size_t bias, BiasForm form) const {
    return curves.At(panel, seed, bias)[form];
  }
};

EntropyResults Simulate(const FigureContext& context) {
  const BiasOptions options = ReadBiasOptions(context.settings);
  const std::size_t panels = options.panels.size();
  EntropyResults results{
      .options = options,
      .curves = {panels, static_cast<std::size_t>(context.seeds), options.biases.size()},
      .large_bias = {panels, static_cast<std::size_t>(context.seeds), 1}};
  ForEachBiasMemory(
      context, options, [&](std::size_t panel, std::size_t seed, const BiasEntries& entries) {
        for (std::size_t i = 0; i < options.biases.size(); ++i) {
          results.curves.At(panel, seed, i) = PriorityEntropies(entries, options.biases[i]);
        }
        results.large_bias.At(panel, seed, 0) = PriorityEntropies(entries, kLargeBias);
      });
  return results;
}

void WriteData(const FigureContext& context, const EntropyResults& results) {
  CsvWriter csv(context.folder / "data.csv", {"panel", "form", "seed", "bias", "entropy"});
  for (std::size_t panel = 0; panel < results.options.panels.size(); ++panel) {
    for (std::size_t form = 0; form < kBiasForms; ++form) {
      for (std::size_t seed = 0; seed < results.curves.seeds(); ++seed) {
        for (std::size_t i = 0; i < results.curves.biases(); ++i) {
          csv.Row(std::string(1, results.options.panels[panel].letter), kBiasFormNames[form],
                  seed + 1, results.options.biases[i], results.curves.At(panel, seed, i)[form]);
        }
      }
    }
  }
  csv.Commit();
}

// closed_form.csv: mean over seeds beside the large-N value and the large-C expansion (from C = 1).
void WriteClosedForm(const FigureContext& context, const EntropyResults& results) {
  CsvWriter csv(context.folder / "closed_form.csv",
                {"panel", "form", "bias", "simulated", "population", "large_bias"});
  const double n = static_cast<double>(results.options.entries);
  for (std::size_t panel = 0; panel < results.options.panels.size(); ++panel) {
    for (std::size_t i = 0; i < results.curves.biases(); ++i) {
      const double bias = results.options.biases[i];
      const BiasPopulation population = IntegrateBias(results.options.panels[panel], bias, n);
      const BiasPopulation expansion = LargeBias(results.options.panels[panel], bias, n);
      for (std::size_t form = 0; form < kBiasForms; ++form) {
        double sum = 0;
        for (std::size_t seed = 0; seed < results.curves.seeds(); ++seed) {
          sum += results.curves.At(panel, seed, i)[form];
        }
        csv.Row(std::string(1, results.options.panels[panel].letter), kBiasFormNames[form], bias,
                sum / static_cast<double>(results.curves.seeds()), population.entropy[form],
                bias >= 1 ? expansion.entropy[form] : std::numeric_limits<double>::quiet_NaN());
      }
    }
  }
  csv.Commit();
}

// Mean over the bias axis of H[first] - H[second].
PanelStatistic MeanGap(const EntropyResults& results, BiasForm first, BiasForm second) {
  return [&results, first, second](std::size_t panel, std::size_t seed) {
    double sum = 0;
    for (std::size_t i = 0; i < results.curves.biases(); ++i) {
      sum += results.H(panel, seed, i, first) - results.H(panel, seed, i, second);
    }
    return sum / static_cast<double>(results.curves.biases());
  };
}

void ClaimLimit(const EntropyResults& results, std::vector<Claim>* claims) {
  std::vector<double> largest(results.curves.seeds(), 0);
  for (std::size_t panel = 0; panel < results.options.panels.size(); ++panel) {
    for (std::size_t seed = 0; seed < largest.size(); ++seed) {
      for (const double entropy : results.large_bias.At(panel, seed, 0)) {
        largest[seed] = std::max(largest[seed], results.log_entries() - entropy);
      }
    }
  }
  claims->push_back(ClaimWithin(
      {.id = "30a",
       .statement = "In the limit of large C every form gives a uniform distribution.",
       .where_in_paper = "L559, L574",
       .statistic = "largest ln N - H at C = 100 over panels and forms; within 0.01 (an effective "
                    "number of entries within 1 % of N) supports it"},
      largest, 0.01));
}

void ClaimRise(const EntropyResults& results, std::vector<Claim>* claims) {
  const std::size_t panels = results.options.panels.size();
  const std::size_t seeds = results.curves.seeds();
  const auto smallest_step = [&](std::size_t panel, std::size_t seed) {
    double smallest = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < results.last(); ++i) {
      for (std::size_t form = 0; form < kBiasForms; ++form) {
        smallest = std::min(smallest, results.curves.At(panel, seed, i + 1)[form] -
                                          results.curves.At(panel, seed, i)[form]);
      }
    }
    return smallest;
  };
  ClaimPositiveInPanels({.id = "31a",
                         .statement = "As C increases, the entropy increases.",
                         .where_in_paper = "L583",
                         .statistic = "smallest step of H between neighbouring C over the axis and "
                                      "the four forms; > 0 supports it"},
                        smallest_step, panels, seeds, claims);
  const auto levelling = [&](std::size_t panel, std::size_t seed) {
    double smallest = std::numeric_limits<double>::infinity();
    const PerForm& start = results.curves.At(panel, seed, 0);
    const PerForm& middle = results.curves.At(panel, seed, results.last() / 2);
    const PerForm& end = results.curves.At(panel, seed, results.last());
    for (std::size_t form = 0; form < kBiasForms; ++form) {
      smallest = std::min(smallest, (middle[form] - start[form]) - (end[form] - middle[form]));
    }
    return smallest;
  };
  ClaimPositiveInPanels({.id = "31b",
                         .statement = "The entropy saturates at a maximum.",
                         .where_in_paper = "L583",
                         .statistic = "rise of H over the first half of the axis minus its rise "
                                      "over the second half, smallest of the four forms; > 0 "
                                      "supports it (the level is ln N by 30a)"},
                        levelling, panels, seeds, claims);
}

void ClaimOrder(const EntropyResults& results, std::vector<Claim>* claims) {
  const std::size_t panels = results.options.panels.size();
  const std::size_t seeds = results.curves.seeds();
  const PanelStatistic vanilla_above = MeanGap(results, kVanilla, kEu);
  std::vector<double> vanilla_below = SmallestPanel(vanilla_above, panels, seeds);
  for (double& value : vanilla_below) value = -value;
  claims->push_back(ClaimPositive(
      {.id = "32a",
       .statement = "In some instances the vanilla form has lower entropy than E/U.",
       .where_in_paper = "L583",
       .statistic = "largest over panels of the mean over the axis of H[E/U] - H[E]; > 0 supports "
                    "it"},
      vanilla_below));
  const PanelStatistic first_gap = MeanGap(results, kEu, kE2u);
  const PanelStatistic second_gap = MeanGap(results, kE2u, kE3u);
  ClaimPositiveInPanels(
      {.id = "32b",
       .statement = "The entropy remains lower for longer when the exponent is higher.",
       .where_in_paper = "L583",
       .statistic = "mean over the axis of H[E^m/U] - H[E^(m+1)/U], smaller of m = 1, 2; > 0 "
                    "supports it"},
      [&](std::size_t panel, std::size_t seed) {
        return std::min(first_gap(panel, seed), second_gap(panel, seed));
      },
      panels, seeds, claims);
}

void ClaimMuchLower(const EntropyResults& results, std::vector<Claim>* claims) {
  const std::size_t panels = results.options.panels.size();
  const std::size_t seeds = results.curves.seeds();
  ClaimPositiveInPanels({.id = "37a",
                         .statement = "The entropy of E^2/U is lower than that of E.",
                         .where_in_paper = "L1078",
                         .statistic = "mean over the axis of H[E] - H[E^2/U]; > 0 supports it"},
                        MeanGap(results, kVanilla, kE2u), panels, seeds, claims);
  ClaimPositiveInPanels(
      {.id = "37b",
       .statement = "It is much lower (and more informative).",
       .where_in_paper = "L1078",
       .statistic = "mean over the axis of (ln N - H[E^2/U]) / (ln N - H[E]), minus 2; > 0 (at "
                    "least twice as far from uniform) supports it"},
      [&](std::size_t panel, std::size_t seed) {
        double sum = 0;
        for (std::size_t i = 0; i < results.curves.biases(); ++i) {
          sum += (results.log_entries() - results.H(panel, seed, i, kE2u)) /
                 (results.log_entries() - results.H(panel, seed, i, kVanilla));
        }
        return sum / static_cast<double>(results.curves.biases()) - 2;
      },
      panels, seeds, claims);
}

std::vector<Claim> Run(const FigureContext& context) {
  const EntropyResults results = Simulate(context);
  WriteData(context, results);
  WriteClosedForm(context, results);
  WriteBiasPanels(context, results.options);
  std::vector<Claim> claims;
  ClaimLimit(results, &claims);
  ClaimRise(results, &claims);
  ClaimOrder(results, &claims);
  ClaimMuchLower(results, &claims);
  return claims;
}

}  // namespace

Figure BiasEntropyFigure() {
  return {.id = "bias-entropy",
          .title = "Entropy of the priority distribution against the bias of the uncertainty",
          .default_seeds = 10,
          .settings = BiasSettings(40, 2),
          .run = Run};
}

}  // namespace uper::experiments
