#include "experiments/bias/error/figure.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "experiments/bias/study.h"
#include "uper/base/check.h"
#include "uper/base/files/csv_writer.h"

namespace uper::experiments::bias::error {
namespace {

struct ErrorResults {
  BiasOptions options;
  BiasTable<ErrorsPerForm> curves;  // at options.biases
  BiasTable<ErrorMoments> uniform;  // of uniform sampling, one position

  std::size_t panels() const { return options.panels.size(); }
  std::size_t seeds() const { return curves.seeds(); }
  std::size_t last() const { return options.biases.size() - 1; }
  PanelGrid grid() const { return {.panels = panels(), .seeds = seeds()}; }
  // Errors in units of the error of uniform sampling. 1 is as bad as no prioritization.
  double Mean(std::size_t panel, std::size_t seed, std::size_t bias, BiasForm form) const {
    return curves.At(panel, seed, bias)[form].mean / uniform.At(panel, seed, 0).mean;
  }
  double Sd(std::size_t panel, std::size_t seed, std::size_t bias, BiasForm form) const {
    return curves.At(panel, seed, bias)[form].sd / uniform.At(panel, seed, 0).sd;
  }
};

ErrorResults Simulate(const FigureContext& context) {
  const BiasOptions options = ReadBiasOptions(context.settings);
  const std::size_t panels = options.panels.size();
  const auto seeds = static_cast<std::size_t>(context.seeds);
  ErrorResults results{.options = options,
                       .curves = {panels, seeds, options.biases.size()},
                       .uniform = {panels, seeds, 1}};
  ForEachBiasMemory(
      context, options, [&](std::size_t panel, std::size_t seed, const BiasEntries& entries) {
        for (std::size_t i = 0; i < options.biases.size(); ++i) {
          results.curves.At(panel, seed, i) = PriorityErrors(entries, options.biases[i]);
        }
        results.uniform.At(panel, seed, 0) = UniformError(entries);
      });
  return results;
}

void WriteData(const FigureContext& context, const ErrorResults& results) {
  CsvWriter csv(context.folder / "data.csv",
                {"panel", "form", "seed", "bias", "error_mean", "error_sd"});
  CsvWriter uniform(context.folder / "uniform.csv", {"panel", "seed", "error_mean", "error_sd"});
  for (std::size_t panel = 0; panel < results.panels(); ++panel) {
    const std::string letter(1, results.options.panels[panel].letter);
    for (std::size_t form = 0; form < kBiasForms; ++form) {
      for (std::size_t seed = 0; seed < results.seeds(); ++seed) {
        for (std::size_t i = 0; i <= results.last(); ++i) {
          const ErrorMoments& error = results.curves.At(panel, seed, i)[form];
          csv.Row(letter, kBiasFormNames[form], seed + 1, results.options.biases[i], error.mean,
                  error.sd);
        }
      }
    }
    for (std::size_t seed = 0; seed < results.seeds(); ++seed) {
      const ErrorMoments& error = results.uniform.At(panel, seed, 0);
      uniform.Row(letter, seed + 1, error.mean, error.sd);
    }
  }
  csv.Commit();
  uniform.Commit();
}

// C at which E^3/U stops being worse than E.
double Crossing(const ErrorResults& results, std::size_t panel, std::size_t seed) {
  std::vector<double> difference(results.last() + 1);
  for (std::size_t i = 0; i <= results.last(); ++i) {
    difference[i] = results.Mean(panel, seed, i, kE3u) - results.Mean(panel, seed, i, kVanilla);
  }
  return LastFallThroughZero(results.options.biases, difference);
}

void WriteCrossings(const FigureContext& context, const ErrorResults& results) {
  CsvWriter csv(context.folder / "crossings.csv", {"panel", "seed", "bias", "bias_over_mean_eta"});
  for (std::size_t panel = 0; panel < results.panels(); ++panel) {
    for (std::size_t seed = 0; seed < results.seeds(); ++seed) {
      const double crossing = Crossing(results, panel, seed);
      csv.Row(std::string(1, results.options.panels[panel].letter), seed + 1, crossing,
              crossing / results.options.panels[panel].eta.Mean());
    }
  }
  csv.Commit();
}

using ErrorAt = double (ErrorResults::*)(std::size_t, std::size_t, std::size_t, BiasForm) const;

// Largest mean or standard deviation of the vanilla form's error at C = 0, of all seeds and panels.
double LargestVanillaErrorAtZero(const ErrorResults& results) {
  double largest = 0;
  for (std::size_t panel = 0; panel < results.panels(); ++panel) {
    for (std::size_t seed = 0; seed < results.seeds(); ++seed) {
      const ErrorMoments& error = results.curves.At(panel, seed, 0)[kVanilla];
      largest = std::max({largest, error.mean, error.sd});
    }
  }
  return largest;
}

// Smallest difference error[E/U] - error[other] anywhere on the axis.
PanelStatistic SmallestExcess(const ErrorResults& results, ErrorAt error, BiasForm other) {
  return [&results, error, other](std::size_t panel, std::size_t seed) {
    double smallest = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i <= results.last(); ++i) {
      smallest = std::min(smallest, (results.*error)(panel, seed, i, kEu) -
                                        (results.*error)(panel, seed, i, other));
    }
    return smallest;
  };
}

// Mean error of one form minus that of another at one position of the axis.
PanelStatistic Difference(const ErrorResults& results, std::size_t at, BiasForm one,
                          BiasForm other) {
  return [&results, at, one, other](std::size_t panel, std::size_t seed) {
    return results.Mean(panel, seed, at, one) - results.Mean(panel, seed, at, other);
  };
}

PanelStatistic Smaller(PanelStatistic a, PanelStatistic b) {
  return [a = std::move(a), b = std::move(b)](std::size_t panel, std::size_t seed) {
    return std::min(a(panel, seed), b(panel, seed));
  };
}

// ln(largest / smallest crossing of the panels / 1.1), for each seed. Crossings are divided by
// scale(panel).
std::vector<double> CrossingSpread(const ErrorResults& results,
                                   const std::function<double(std::size_t)>& scale) {
  const PanelStatistic scaled = [&](std::size_t panel, std::size_t seed) {
    return Crossing(results, panel, seed) / scale(panel);
  };
  std::vector<double> spread = LargestPanel(results.grid(), scaled);
  const std::vector<double> smallest = SmallestPanel(results.grid(), scaled);
  for (std::size_t seed = 0; seed < spread.size(); ++seed) {
    spread[seed] = std::log(spread[seed] / smallest[seed] / 1.1);
  }
  return spread;
}

// Mean over the axis of |error[form] - error[E]|.
double MeanDistanceToVanilla(const ErrorResults& results, std::size_t panel, std::size_t seed,
                             BiasForm form) {
  double sum = 0;
  for (std::size_t i = 0; i <= results.last(); ++i) {
    sum += std::abs(results.Mean(panel, seed, i, form) - results.Mean(panel, seed, i, kVanilla));
  }
  return sum / static_cast<double>(results.last() + 1);
}

// By how much E^2/U stays closer to E than another form does.
PanelStatistic Closeness(const ErrorResults& results, BiasForm other) {
  return [&results, other](std::size_t panel, std::size_t seed) {
    return MeanDistanceToVanilla(results, panel, seed, other) -
           MeanDistanceToVanilla(results, panel, seed, kE2u);
  };
}

// Claims 33a to 33f: E/U against each other form, mean and standard deviation.
std::vector<ClaimRow> PoorRatioClaims(const ErrorResults& results) {
  struct Other {
    const char* name;
    BiasForm form;
  };
  struct Moment {
    const char* name;
    ErrorAt error;
  };
  std::vector<ClaimRow> rows;
  for (const Other& other : {Other{"E", kVanilla}, {"E^2/U", kE2u}, {"E^3/U", kE3u}}) {
    for (const Moment& moment :
         {Moment{"mean", &ErrorResults::Mean}, {"standard deviation", &ErrorResults::Sd}}) {
      const PanelStatistic excess = SmallestExcess(results, moment.error, other.form);
      rows.push_back({{.id = "33" + std::string(1, static_cast<char>('a' + rows.size())),
                       .statement = std::string("E/U has systematically higher ") + moment.name +
                                    " of the error than " + other.name + ".",
                       .where_in_paper = "L1076",
                       .statistic = "smallest difference of the two errors anywhere on the axis, "
                                    "in units of uniform sampling's; > 0 (higher at every C) "
                                    "supports it"},
                      other.form == kVanilla ? PositiveInPanels(results.grid(), excess)
                                             : PositiveInAllPanels(results.grid(), excess)});
    }
  }
  return rows;
}

// Claims 34a to 34c: the exponent at large and at small C.
std::vector<ClaimRow> TradeOffClaims(const ErrorResults& results) {
  const PanelGrid grid = results.grid();
  const std::size_t last = results.last();
  return {{{.id = "34a",
            .statement = "For high C the deviation falls with the exponent m.",
            .where_in_paper = "L1076",
            .statistic = "mean error of E^m/U minus that of E^(m+1)/U at the end of the axis (C = "
                         "10), smaller of m = 1, 2, in units of uniform sampling's; > 0 supports "
                         "it"},
           PositiveInPanels(grid, Smaller(Difference(results, last, kEu, kE2u),
                                          Difference(results, last, kE2u, kE3u)))},
          {{.id = "34b",
            .statement = "For low C it rises with the exponent m.",
            .where_in_paper = "L1076",
            .statistic = "mean error of E^(m+1)/U minus that of E^m/U at C = 0, smaller of m = 1, "
                         "2, in units of uniform sampling's; > 0 supports it"},
           PositiveInPanels(grid, Smaller(Difference(results, 0, kE2u, kEu),
                                          Difference(results, 0, kE3u, kE2u)))},
          {{.id = "34c",
            .statement = "For low C a high exponent is catastrophically wrong.",
            .where_in_paper = "L1076",
            .statistic = "mean error of E^3/U at C = 0 in units of uniform sampling's, minus 1; > "
                         "0 (worse than no prioritization at all) supports it"},
           PositiveInPanels(grid, [&results](std::size_t panel, std::size_t seed) {
             return results.Mean(panel, seed, 0, kE3u) - 1;
           })}};
}

// Claims 35a to 35c: the C from which E^3/U is better than E.
std::vector<ClaimRow> CrossingClaims(const ErrorResults& results) {
  return {{{.id = "35a",
            .statement = "With growing C, E^3/U crosses E: from more wrong to less wrong.",
            .where_in_paper = "L1076",
            .statistic = "mean error of E minus that of E^3/U at the end of the axis (C = 10), in "
                         "units of uniform sampling's (at C = 0 the error of E is 0); > 0 "
                         "supports it"},
           PositiveInPanels(results.grid(), Difference(results, results.last(), kVanilla, kE3u))},
          {{.id = "35b",
            .statement = "The C of the crossing depends on the distributions.",
            .where_in_paper = "L1076",
            .statistic = "ln(largest / smallest crossing over panels) - ln 1.1; > 0 (they differ "
                         "by more than 10 %) supports it"},
           Positive(CrossingSpread(results, [](std::size_t) { return 1.0; }))},
          {{.id = "35c",
            .statement = "It depends on the distributions' shapes, beyond the unit of eta.",
            .where_in_paper = "L1076",
            .statistic = "as 35b, each crossing divided by the mean of eta; > 0 supports it"},
           Positive(CrossingSpread(results, [&](std::size_t panel) {
             return results.options.panels[panel].eta.Mean();
           }))}};
}

// Claims 36a to 36c: E^2/U against E.
std::vector<ClaimRow> ConvergenceClaims(const ErrorResults& results) {
  const PanelGrid grid = results.grid();
  const std::size_t fifth = (results.last() + 2) / 5;
  std::vector<ClaimRow> rows = {
      {{.id = "36a",
        .statement = "E^2/U converges very fast to E as a function of C.",
        .where_in_paper = "L1073, L1078",
        .statistic = "mean error of E^2/U minus that of E at a fifth of the axis (C = 2), in units "
                     "of uniform sampling's; within 0.1 supports it"},
       WithinInPanels(grid, Difference(results, fifth, kE2u, kVanilla), 0.1)}};
  const auto add = [&](const char* id, const std::string& other, BiasForm form) {
    rows.push_back({{.id = id,
                     .statement = "E^2/U stays closer to E than " + other + " does.",
                     .where_in_paper = "L1073, L1078",
                     .statistic = "mean over the axis of the distance of " + other +
                                  "'s mean error to E's, minus that of E^2/U's, in units of "
                                  "uniform sampling's; > 0 supports it"},
                    PositiveInPanels(grid, Closeness(results, form))});
  };
  add("36b", "E^3/U", kE3u);
  add("36c", "E/U", kEu);
  return rows;
}

std::vector<ClaimRow> AllClaims(const ErrorResults& results) {
  const double vanilla_error = LargestVanillaErrorAtZero(results);
  std::vector<ClaimRow> table = {
      {{.id = "30b",
        .statement = "With C = 0 the vanilla form gives the true distribution.",
        .where_in_paper = "L559",
        .statistic = "largest mean or s.d. of the vanilla form's error at C = 0 over panels and "
                     "seeds; exactly 0 supports it"},
       Exact(vanilla_error, vanilla_error == 0)}};
  for (std::vector<ClaimRow>& rows :
       std::array{PoorRatioClaims(results), TradeOffClaims(results), CrossingClaims(results),
                  ConvergenceClaims(results)}) {
    for (ClaimRow& row : rows) table.push_back(std::move(row));
  }
  return table;
}

std::vector<Claim> Run(const FigureContext& context) {
  const ErrorResults results = Simulate(context);
  WriteData(context, results);
  WriteClosedForm(
      context, results.options,
      {.seeds = results.seeds(),
       .simulated = [&](std::size_t panel, std::size_t seed, std::size_t i,
                        std::size_t form) { return results.curves.At(panel, seed, i)[form].mean; },
       .closed_form = &BiasPopulation::error_mean});
  WriteCrossings(context, results);
  WriteBiasPanels(context, results.options);
  return TestClaims(AllClaims(results));
}

}  // namespace

double LastFallThroughZero(std::span<const double> positions, std::span<const double> difference) {
  UPER_CHECK(!positions.empty() && positions.size() == difference.size(), "one value a position");
  for (std::size_t i = positions.size(); i-- > 0;) {
    if (difference[i] <= 0) continue;
    if (i + 1 == positions.size()) return positions[i];
    const double share = difference[i] / (difference[i] - difference[i + 1]);
    return positions[i] + share * (positions[i + 1] - positions[i]);
  }
  return positions.front();
}

Figure MakeFigure() {
  return {.id = "bias-error",
          .title = "Error of the priority distribution against the bias of the uncertainty",
          .default_seeds = 10,
          .settings = BiasSettings(100, 10),
          .run = Run};
}

}  // namespace uper::experiments::bias::error
