#include "experiments/bandit/shifted/figure.h"

#include <cmath>

#include "experiments/bandit/runs.h"
#include "uper/base/files/csv_writer.h"

namespace uper::experiments::bandit::shifted {
namespace {

// Each form with E, and with E_delta in its place.
struct Form {
  const char* name;
  PriorityRule plain;
  PriorityRule delta;
};
constexpr Form kForms[] = {
    {"epistemic", PriorityRule::kEpistemic, PriorityRule::kEpistemicDelta},
    {"info_gain", PriorityRule::kInfoGain, PriorityRule::kInfoGainDelta},
    {"ratio_ea", PriorityRule::kRatioEa, PriorityRule::kRatioEaDelta},
    {"ratio_eu", PriorityRule::kRatioEu, PriorityRule::kRatioEuDelta},
    {"ratio_e2u", PriorityRule::kRatioE2u, PriorityRule::kRatioE2uDelta},
    {"ratio_e3u", PriorityRule::kRatioE3u, PriorityRule::kRatioE3uDelta},
};

std::vector<PriorityRule> AllForms() {
  std::vector<PriorityRule> rules;
  for (const Form& form : kForms) {
    rules.push_back(form.plain);
    rules.push_back(form.delta);
  }
  return rules;
}

bool HasForm(const BanditRuns& runs, const Form& form) {
  return runs.contains(form.plain) && runs.contains(form.delta);
}

// difference.csv: MSE with E minus MSE with E_delta, per form, seed and iteration.
void WriteDifferences(const FigureContext& context, const BanditRuns& runs) {
  CsvWriter csv(context.folder / "difference.csv", {"form", "seed", "iteration", "difference"});
  for (const Form& form : kForms) {
    if (!HasForm(runs, form)) continue;
    for (std::size_t seed = 0; seed < runs.at(form.plain).size(); ++seed) {
      const std::vector<double>& plain = runs.at(form.plain)[seed].mse;
      const std::vector<double>& delta = runs.at(form.delta)[seed].mse;
      for (std::size_t i = 0; i < plain.size(); ++i) {
        csv.Row(form.name, seed + 1, i + 1, plain[i] - delta[i]);
      }
    }
  }
  csv.Commit();
}

double MeanMse(const BanditTrace& trace) {
  double sum = 0;
  for (const double mse : trace.mse) sum += mse;
  return sum / static_cast<double>(trace.mse.size());
}

// Claim 11, form by form: dMSE = MSE(E) - MSE(E_delta) on the shifted task.
void AddFormClaims(const BanditRuns& shifted, BanditClaims& claims) {
  char letter = 'a';
  for (const Form& form : kForms) {
    const std::string id = std::string("11") + letter++;
    if (!HasForm(shifted, form)) continue;
    claims.Positive(
        {id, std::string(form.name) + ": E_delta is better than E on the shifted task", "L1122",
         "shifted means: mean over iterations of MSE(E form) - MSE(E_delta form); > 0"},
        {form.plain, form.delta}, [form](const BanditClaims::Traces& of) {
          return MeanMse(of(form.plain)) - MeanMse(of(form.delta));
        });
  }
}

// Mean over the forms of the gain in ln MSE from using E_delta instead of E, for one seed.
double MeanGain(const BanditRuns& runs, std::size_t seed) {
  double sum = 0;
  int forms = 0;
  for (const Form& form : kForms) {
    if (!HasForm(runs, form)) continue;
    sum += MeanLogMse(runs.at(form.plain)[seed]) - MeanLogMse(runs.at(form.delta)[seed]);
    ++forms;
  }
  return sum / forms;
}

std::vector<Claim> GainClaims(const BanditRuns& equal, const BanditRuns& shifted, int seeds) {
  std::vector<double> gain_shifted;
  std::vector<double> difference;
  for (int seed = 0; seed < seeds; ++seed) {
    gain_shifted.push_back(MeanGain(shifted, seed));
    difference.push_back(gain_shifted.back() - MeanGain(equal, seed));
  }
  return {ClaimPositive({"10a", "Equal means dampen the gain of E_delta over E", "L355",
                         "gain = mean over forms and iterations of ln MSE(E) - ln MSE(E_delta); "
                         "gain with shifted means minus gain with equal means; > 0"},
                        difference),
          ClaimPositive({"10b", "Distinct means show the gain of E_delta over E", "L355",
                         "the same gain with shifted means; > 0"},
                        gain_shifted)};
}

std::vector<Claim> RunShiftedFigure(const FigureContext& context) {
  const BanditOptions equal_options = BanditOptionsFrom(context.settings);
  BanditOptions shifted_options = equal_options;
  shifted_options.bandit.mean_spread = context.settings.Number("mean_spread");
  const std::vector<PriorityRule> schemes = SchemesFrom(context.settings);
  const std::vector<BanditRuns> both =
      RunBandits(context, {{shifted_options, schemes}, {equal_options, schemes}});
  const BanditRuns& shifted = both[0];
  const BanditRuns& equal = both[1];
  WriteConeCsv(context, shifted_options.bandit);
  WriteBanditCsv(context, shifted);
  WriteBanditCsv(context, equal, "_equal_means");
  WriteDifferences(context, shifted);

  std::vector<Claim> all;
  for (const Form& form : kForms) {
    if (!HasForm(shifted, form)) continue;
    all = GainClaims(equal, shifted, context.seeds);
    break;
  }
  BanditClaims claims(shifted);
  AddFormClaims(shifted, claims);
  for (Claim& claim : claims.Take()) all.push_back(std::move(claim));
  return all;
}

}  // namespace

Figure MakeFigure() {
  std::vector<SettingInfo> settings = BanditSettings(AllForms());
  settings.push_back(NumberSetting("mean_spread", SettingInfo::Type::kNumber, 1, -1e6, 1e6,
                                   "mean of the quietest arm minus mean of the noisiest one"));
  return {.id = "bandit-shifted",
          .title = "Shifted means: MSE with E minus MSE with E_delta, form by form",
          .default_seeds = 10,
          .settings = std::move(settings),
          .run = RunShiftedFigure};
}

}  // namespace uper::experiments::bandit::shifted
