#include "experiments/bias/entropy/figure.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "experiments/bias/study.h"
#include "uper/base/files/csv_writer.h"

namespace uper::experiments::bias::entropy {
namespace {

// Far beyond every density's scale: the "limit of large C".
constexpr double kLargeBias = 100;

struct EntropyResults {
  BiasOptions options;
  BiasTable<PerForm> curves;      // at options.biases
  BiasTable<PerForm> large_bias;  // at kLargeBias, one position

  double log_entries() const { return std::log(static_cast<double>(options.entries)); }
  std::size_t last() const { return options.biases.size() - 1; }
  PanelGrid grid() const { return {.panels = curves.panels(), .seeds = curves.seeds()}; }
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

// Mean over the bias axis of value(position).
double AxisMean(const EntropyResults& results, const std::function<double(std::size_t)>& value) {
  double sum = 0;
  for (std::size_t i = 0; i < results.curves.biases(); ++i) sum += value(i);
  return sum / static_cast<double>(results.curves.biases());
}

// Mean over the bias axis of H[first] - H[second].
PanelStatistic MeanGap(const EntropyResults& results, BiasForm first, BiasForm second) {
  return [&results, first, second](std::size_t panel, std::size_t seed) {
    return AxisMean(results, [&](std::size_t i) {
      return results.H(panel, seed, i, first) - results.H(panel, seed, i, second);
    });
  };
}

// Largest ln N - H over the forms at C = kLargeBias.
PanelStatistic DistanceFromUniform(const EntropyResults& results) {
  return [&results](std::size_t panel, std::size_t seed) {
    double largest = 0;
    for (const double entropy : results.large_bias.At(panel, seed, 0)) {
      largest = std::max(largest, results.log_entries() - entropy);
    }
    return largest;
  };
}

// Smallest step of H from one C to the next, over the axis and the forms.
PanelStatistic SmallestStep(const EntropyResults& results) {
  return [&results](std::size_t panel, std::size_t seed) {
    double smallest = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < results.last(); ++i) {
      for (std::size_t form = 0; form < kBiasForms; ++form) {
        smallest = std::min(smallest, results.curves.At(panel, seed, i + 1)[form] -
                                          results.curves.At(panel, seed, i)[form]);
      }
    }
    return smallest;
  };
}

// Rise of H over the first half of the axis minus its rise over the second half, smallest form.
PanelStatistic Leveling(const EntropyResults& results) {
  return [&results](std::size_t panel, std::size_t seed) {
    double smallest = std::numeric_limits<double>::infinity();
    const PerForm& start = results.curves.At(panel, seed, 0);
    const PerForm& middle = results.curves.At(panel, seed, results.last() / 2);
    const PerForm& end = results.curves.At(panel, seed, results.last());
    for (std::size_t form = 0; form < kBiasForms; ++form) {
      smallest = std::min(smallest, (middle[form] - start[form]) - (end[form] - middle[form]));
    }
    return smallest;
  };
}

// The smaller of the mean gaps H[E/U] - H[E^2/U] and H[E^2/U] - H[E^3/U].
PanelStatistic SmallerExponentGap(const EntropyResults& results) {
  return [first = MeanGap(results, kEu, kE2u), second = MeanGap(results, kE2u, kE3u)](
             std::size_t panel, std::size_t seed) {
    return std::min(first(panel, seed), second(panel, seed));
  };
}

// Mean over the axis of (ln N - H[E^2/U]) / (ln N - H[E]), minus 2.
PanelStatistic DistanceRatio(const EntropyResults& results) {
  return [&results](std::size_t panel, std::size_t seed) {
    return AxisMean(results,
                    [&](std::size_t i) {
                      return (results.log_entries() - results.H(panel, seed, i, kE2u)) /
                             (results.log_entries() - results.H(panel, seed, i, kVanilla));
                    }) -
           2;
  };
}

// Claims 30a, 31a and 31b: the limit of large C, and the way there.
std::vector<ClaimRow> LimitClaims(const EntropyResults& results) {
  const PanelGrid grid = results.grid();
  return {{{.id = "30a",
            .statement = "In the limit of large C every form gives a uniform distribution.",
            .where_in_paper = "L559, L574",
            .statistic = "largest ln N - H at C = 100 over panels and forms; within 0.01 (an "
                         "effective number of entries within 1 % of N) supports it"},
           Within(LargestPanel(grid, DistanceFromUniform(results)), 0.01)},
          {{.id = "31a",
            .statement = "As C increases, the entropy increases.",
            .where_in_paper = "L583",
            .statistic = "smallest step of H between neighboring C over the axis and the four "
                         "forms; > 0 supports it"},
           PositiveInPanels(grid, SmallestStep(results))},
          {{.id = "31b",
            .statement = "The entropy saturates at a maximum.",
            .where_in_paper = "L583",
            .statistic = "rise of H over the first half of the axis minus its rise over the second "
                         "half, smallest of the four forms; > 0 supports it (the level is ln N by "
                         "30a)"},
           PositiveInPanels(grid, Leveling(results))}};
}

// Claims 32a to 37b: the forms compared.
std::vector<ClaimRow> OrderClaims(const EntropyResults& results) {
  const PanelGrid grid = results.grid();
  return {{{.id = "32a",
            .statement = "In some instances the vanilla form has lower entropy than E/U.",
            .where_in_paper = "L583",
            .statistic = "largest over panels of the mean over the axis of H[E/U] - H[E]; > 0 "
                         "supports it"},
           Positive(LargestPanel(grid, MeanGap(results, kEu, kVanilla)))},
          {{.id = "32b",
            .statement = "The entropy remains lower for longer when the exponent is higher.",
            .where_in_paper = "L583",
            .statistic = "mean over the axis of H[E^m/U] - H[E^(m+1)/U], smaller of m = 1, 2; > 0 "
                         "supports it"},
           PositiveInPanels(grid, SmallerExponentGap(results))},
          {{.id = "37a",
            .statement = "The entropy of E^2/U is lower than that of E.",
            .where_in_paper = "L1078",
            .statistic = "mean over the axis of H[E] - H[E^2/U]; > 0 supports it"},
           PositiveInPanels(grid, MeanGap(results, kVanilla, kE2u))},
          {{.id = "37b",
            .statement = "It is much lower (and more informative).",
            .where_in_paper = "L1078",
            .statistic = "mean over the axis of (ln N - H[E^2/U]) / (ln N - H[E]), minus 2; > 0 "
                         "(at least twice as far from uniform) supports it"},
           PositiveInPanels(grid, DistanceRatio(results))}};
}

std::vector<Claim> Run(const FigureContext& context) {
  const EntropyResults results = Simulate(context);
  WriteData(context, results);
  WriteClosedForm(
      context, results.options,
      {.seeds = results.curves.seeds(),
       .simulated = [&](std::size_t panel, std::size_t seed, std::size_t i,
                        std::size_t form) { return results.curves.At(panel, seed, i)[form]; },
       .closed_form = &BiasPopulation::entropy});
  WriteBiasPanels(context, results.options);
  std::vector<ClaimRow> table = LimitClaims(results);
  for (ClaimRow& row : OrderClaims(results)) table.push_back(std::move(row));
  return TestClaims(table);
}

}  // namespace

Figure MakeFigure() {
  return {.id = "bias-entropy",
          .title = "Entropy of the priority distribution against the bias of the uncertainty",
          .default_seeds = 10,
          .settings = BiasSettings(40, 2),
          .run = Run};
}

}  // namespace uper::experiments::bias::entropy
