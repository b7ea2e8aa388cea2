#include "experiments/bias/bias_error_figure.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "experiments/bias/bias_closed_form.h"
#include "experiments/bias/bias_study.h"
#include "uper/base/check.h"
#include "uper/base/files/csv_writer.h"

namespace uper::experiments {
namespace {

struct ErrorResults {
  BiasOptions options;
  BiasTable<ErrorsPerForm> curves;  // at options.biases
  BiasTable<ErrorMoments> uniform;  // of uniform sampling, one position

  std::size_t panels() const { return options.panels.size(); }
  std::size_t seeds() const { return curves.seeds(); }
  std::size_t last() const { return options.biases.size() - 1; }
  // Errors in units of uniform sampling's error: 0 is right, 1 as bad as no prioritisation.
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

// closed_form.csv: mean over seeds beside the large-N value and the large-C expansion (from C = 1).
void WriteClosedForm(const FigureContext& context, const ErrorResults& results) {
  CsvWriter csv(context.folder / "closed_form.csv",
                {"panel", "form", "bias", "simulated", "population", "large_bias"});
  const double n = static_cast<double>(results.options.entries);
  for (std::size_t panel = 0; panel < results.panels(); ++panel) {
    const BiasPanel& densities = results.options.panels[panel];
    for (std::size_t i = 0; i <= results.last(); ++i) {
      const double bias = results.options.biases[i];
      const BiasPopulation population = IntegrateBias(densities, bias, n);
      const BiasPopulation expansion = LargeBias(densities, bias, n);
      for (std::size_t form = 0; form < kBiasForms; ++form) {
        double sum = 0;
        for (std::size_t seed = 0; seed < results.seeds(); ++seed) {
          sum += results.curves.At(panel, seed, i)[form].mean;
        }
        csv.Row(std::string(1, densities.letter), kBiasFormNames[form], bias,
                sum / static_cast<double>(results.seeds()), population.error_mean[form],
                bias >= 1 ? expansion.error_mean[form] : std::numeric_limits<double>::quiet_NaN());
      }
    }
  }
  csv.Commit();
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

void ClaimTrueDistribution(const ErrorResults& results, std::vector<Claim>* claims) {
  double largest = 0;
  for (std::size_t panel = 0; panel < results.panels(); ++panel) {
    for (std::size_t seed = 0; seed < results.seeds(); ++seed) {
      const ErrorMoments& error = results.curves.At(panel, seed, 0)[kVanilla];
      largest = std::max({largest, error.mean, error.sd});
    }
  }
  claims->push_back(ClaimExact(
      {.id = "30b",
       .statement = "With C = 0 the vanilla form gives the true distribution.",
       .where_in_paper = "L559",
       .statistic = "largest mean or s.d. of the vanilla form's error at C = 0 over panels and "
                    "seeds; exactly 0 supports it"},
      largest, largest == 0));
}

using ErrorAt = double (ErrorResults::*)(std::size_t, std::size_t, std::size_t, BiasForm) const;

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

void ClaimEuPoor(const ErrorResults& results, std::vector<Claim>* claims) {
  const std::array<std::string, 3> others = {"E", "E^2/U", "E^3/U"};
  const std::array<BiasForm, 3> forms = {kVanilla, kE2u, kE3u};
  const std::array<std::string, 2> moments = {"mean", "standard deviation"};
  const std::array<ErrorAt, 2> errors = {&ErrorResults::Mean, &ErrorResults::Sd};
  for (std::size_t form = 0; form < forms.size(); ++form) {
    for (std::size_t moment = 0; moment < errors.size(); ++moment) {
      const ClaimText text = {
          .id = "33" + std::string(1, static_cast<char>('a' + 2 * form + moment)),
          .statement = "E/U has systematically higher " + moments[moment] + " of the error than " +
                       others[form] + ".",
          .where_in_paper = "L1076",
          .statistic =
              "smallest difference of the two errors anywhere on the axis, in units of "
              "uniform sampling's; > 0 (higher at every C) supports it"};
      const PanelStatistic excess = SmallestExcess(results, errors[moment], forms[form]);
      if (forms[form] == kVanilla) {
        ClaimPositiveInPanels(text, excess, results.panels(), results.seeds(), claims);
      } else {
        ClaimPositiveInAllPanels(text, excess, results.panels(), results.seeds(), claims);
      }
    }
  }
}

void ClaimTradeOff(const ErrorResults& results, std::vector<Claim>* claims) {
  const auto smaller_fall = [&](std::size_t panel, std::size_t seed, std::size_t bias) {
    const double m1 = results.Mean(panel, seed, bias, kEu);
    const double m2 = results.Mean(panel, seed, bias, kE2u);
    const double m3 = results.Mean(panel, seed, bias, kE3u);
    return std::pair(std::min(m1 - m2, m2 - m3), std::min(m2 - m1, m3 - m2));
  };
  ClaimPositiveInPanels(
      {.id = "34a",
       .statement = "For high C the deviation falls with the exponent m.",
       .where_in_paper = "L1076",
       .statistic = "mean error of E^m/U minus that of E^(m+1)/U at the end of the axis (C = 10), "
                    "smaller of m = 1, 2, in units of uniform sampling's; > 0 supports it"},
      [&](std::size_t panel, std::size_t seed) {
        return smaller_fall(panel, seed, results.last()).first;
      },
      results.panels(), results.seeds(), claims);
  ClaimPositiveInPanels(
      {.id = "34b",
       .statement = "For low C it rises with the exponent m.",
       .where_in_paper = "L1076",
       .statistic = "mean error of E^(m+1)/U minus that of E^m/U at C = 0, smaller of m = 1, 2, in "
                    "units of uniform sampling's; > 0 supports it"},
      [&](std::size_t panel, std::size_t seed) { return smaller_fall(panel, seed, 0).second; },
      results.panels(), results.seeds(), claims);
  ClaimPositiveInPanels(
      {.id = "34c",
       .statement = "For low C a high exponent is catastrophically wrong.",
       .where_in_paper = "L1076",
       .statistic = "mean error of E^3/U at C = 0 in units of uniform sampling's, minus 1; > 0 "
                    "(worse than no prioritisation at all) supports it"},
      [&](std::size_t panel, std::size_t seed) { return results.Mean(panel, seed, 0, kE3u) - 1; },
      results.panels(), results.seeds(), claims);
}

// ln(largest / smallest crossing of the panels / 1.1), for each seed; crossings divided by
// scale(panel).
std::vector<double> CrossingSpread(const ErrorResults& results,
                                   const std::function<double(std::size_t)>& scale) {
  std::vector<double> spread(results.seeds());
  for (std::size_t seed = 0; seed < results.seeds(); ++seed) {
    double smallest = std::numeric_limits<double>::infinity();
    double largest = 0;
    for (std::size_t panel = 0; panel < results.panels(); ++panel) {
      const double crossing = Crossing(results, panel, seed) / scale(panel);
      smallest = std::min(smallest, crossing);
      largest = std::max(largest, crossing);
    }
    spread[seed] = std::log(largest / smallest / 1.1);
  }
  return spread;
}

void ClaimCrossing(const ErrorResults& results, std::vector<Claim>* claims) {
  ClaimPositiveInPanels(
      {.id = "35a",
       .statement = "With growing C, E^3/U crosses E: from more wrong to less wrong.",
       .where_in_paper = "L1076",
       .statistic = "mean error of E minus that of E^3/U at the end of the axis (C = 10), in units "
                    "of uniform sampling's (at C = 0 the error of E is 0); > 0 supports it"},
      [&](std::size_t panel, std::size_t seed) {
        return results.Mean(panel, seed, results.last(), kVanilla) -
               results.Mean(panel, seed, results.last(), kE3u);
      },
      results.panels(), results.seeds(), claims);
  claims->push_back(ClaimPositive(
      {.id = "35b",
       .statement = "The C of the crossing depends on the distributions.",
       .where_in_paper = "L1076",
       .statistic = "ln(largest / smallest crossing over panels) - ln 1.1; > 0 (they differ by "
                    "more than 10 %) supports it"},
      CrossingSpread(results, [](std::size_t) { return 1.0; })));
  claims->push_back(ClaimPositive(
      {.id = "35c",
       .statement = "It depends on the distributions' shapes, beyond the unit of eta.",
       .where_in_paper = "L1076",
       .statistic = "as 35b, each crossing divided by the mean of eta; > 0 supports it"},
      CrossingSpread(results,
                     [&](std::size_t panel) { return results.options.panels[panel].eta.Mean(); })));
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

void ClaimFastConvergence(const ErrorResults& results, std::vector<Claim>* claims) {
  ClaimWithinInPanels(
      {.id = "36a",
       .statement = "E^2/U converges very fast to E as a function of C.",
       .where_in_paper = "L1073, L1078",
       .statistic = "mean error of E^2/U minus that of E at a fifth of the axis (C = 2), in units "
                    "of uniform sampling's; within 0.1 supports it"},
      [&](std::size_t panel, std::size_t seed) {
        const std::size_t fifth = (results.last() + 2) / 5;
        return results.Mean(panel, seed, fifth, kE2u) - results.Mean(panel, seed, fifth, kVanilla);
      },
      0.1, results.panels(), results.seeds(), claims);
  const std::array<std::string, 2> others = {"E^3/U", "E/U"};
  const std::array<BiasForm, 2> forms = {kE3u, kEu};
  for (std::size_t k = 0; k < forms.size(); ++k) {
    ClaimPositiveInPanels(
        {.id = k == 0 ? "36b" : "36c",
         .statement = "E^2/U stays closer to E than " + others[k] + " does.",
         .where_in_paper = "L1073, L1078",
         .statistic = "mean over the axis of the distance of " + others[k] +
                      "'s mean error to E's, minus that of E^2/U's, in units of uniform "
                      "sampling's; > 0 supports it"},
        [&results, form = forms[k]](std::size_t panel, std::size_t seed) {
          return MeanDistanceToVanilla(results, panel, seed, form) -
                 MeanDistanceToVanilla(results, panel, seed, kE2u);
        },
        results.panels(), results.seeds(), claims);
  }
}

std::vector<Claim> Run(const FigureContext& context) {
  const ErrorResults results = Simulate(context);
  WriteData(context, results);
  WriteClosedForm(context, results);
  WriteCrossings(context, results);
  WriteBiasPanels(context, results.options);
  std::vector<Claim> claims;
  ClaimTrueDistribution(results, &claims);
  ClaimEuPoor(results, &claims);
  ClaimTradeOff(results, &claims);
  ClaimCrossing(results, &claims);
  ClaimFastConvergence(results, &claims);
  return claims;
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

Figure BiasErrorFigure() {
  return {.id = "bias-error",
          .title = "Error of the priority distribution against the bias of the uncertainty",
          .default_seeds = 10,
          .settings = BiasSettings(100, 10),
          .run = Run};
}

}  // namespace uper::experiments
