#include "experiments/bandit/schemes/figure.h"

#include <cmath>

#include "experiments/bandit/runs.h"
#include "uper/base/files/csv_writer.h"
#include "uper/core/other_decompositions.h"

namespace uper::experiments::bandit::schemes {
namespace {

using Traces = BanditClaims::Traces;

constexpr auto kTd = PriorityRule::kTd;
constexpr auto kTotal = PriorityRule::kTotal;
constexpr auto kTotalDelta = PriorityRule::kTotalDelta;

// Priorities made of epistemic uncertainty, claim 15's point of comparison.
const std::vector<PriorityRule> kEpistemicRules = {
    PriorityRule::kEpistemic,     PriorityRule::kEpistemicDelta, PriorityRule::kInfoGain,
    PriorityRule::kInfoGainDelta, PriorityRule::kRatioEa,        PriorityRule::kRatioEaDelta,
    PriorityRule::kRatioEu,       PriorityRule::kRatioEuDelta,   PriorityRule::kRatioE2u,
    PriorityRule::kRatioE2uDelta, PriorityRule::kRatioE3u,       PriorityRule::kRatioE3uDelta};

std::vector<PriorityRule> AllRules() {
  return {AllPriorityRules().begin(), AllPriorityRules().end()};
}

// The terms of the squared TD error and of the total uncertainty (SM, "Uncertainty decomposition
// in quantile regression"), means over seeds. The target's variance is known here.
void WriteTermsCsv(const FigureContext& context, const BanditRuns& runs,
                   const ConalBandit& bandit) {
  CsvWriter csv(context.folder / "terms.csv",
                {"scheme", "iteration", "arm", "true_distance_sq", "target_variance",
                 "estimation_variance", "td_error_sq", "total_uncertainty"});
  for (const auto& [rule, traces] : runs) {
    const double seeds = static_cast<double>(traces.size());
    for (std::size_t i = 0; i < traces.front().mse.size(); ++i) {
      for (int arm = 0; arm < bandit.arms(); ++arm) {
        QuantileErrorTerms terms{.target_variance = bandit.sigma(arm) * bandit.sigma(arm)};
        for (const BanditTrace& trace : traces) {
          const ArmRecord& record = trace.At(static_cast<int>(i), arm);
          terms.true_distance_sq += record.error_sq / seeds;
          terms.estimation_variance += record.member_variance / seeds;
        }
        csv.Row(PriorityRuleName(rule), i + 1, arm, terms.true_distance_sq, terms.target_variance,
                terms.estimation_variance, terms.td_error_sq(), terms.total_uncertainty());
      }
    }
  }
  csv.Commit();
}

double NoisyShare(const BanditTrace& trace) { return DrawShare(trace, NoisyArm(trace)); }

void AddOverSamplingClaims(BanditClaims& claims) {
  const auto excess = [](PriorityRule rule) {
    return [rule](const Traces& of) { return NoisyShare(of(rule)) - 1.0 / of(rule).arms; };
  };
  claims.Positive({"12a", "Total uncertainty over-samples the noisiest arm", "L505",
                   "share of total_delta's draws on the noisiest arm minus 1/arms; > 0"},
                  {kTotalDelta}, excess(kTotalDelta));
  claims.Positive({"12b", "So does the total uncertainty without the target distance", "L505",
                   "share of total's draws on the noisiest arm minus 1/arms; > 0"},
                  {kTotal}, excess(kTotal));
  claims.Positive({"13a", "The TD error over-samples the noisiest arm too", "L509",
                   "share of td's draws on the noisiest arm minus 1/arms; > 0"},
                  {kTd}, excess(kTd));
  claims.Positive({"13b", "but less than total uncertainty", "L509",
                   "share of draws on the noisiest arm: total_delta - td; > 0"},
                  {kTd, kTotalDelta}, [](const Traces& of) {
                    return NoisyShare(of(kTotalDelta)) - NoisyShare(of(kTd));
                  });
  const std::pair<const char*, PriorityRule> noisy_rules[] = {
      {"15a", kTotal}, {"15b", kTotalDelta}, {"15c", kTd}};
  for (const auto& [id, rule] : noisy_rules) {
    std::vector<PriorityRule> needed = kEpistemicRules;
    needed.push_back(rule);
    const std::string name(PriorityRuleName(rule));
    claims.Positive({id, name + " over-samples high-variance arms relative to epistemic priorities",
                     "L1131, L1138",
                     "share of draws on the noisiest arm: " + name +
                         " minus the mean of the twelve epistemic rules; > 0"},
                    needed, [rule = rule](const Traces& of) {
                      double epistemic = 0;
                      for (const PriorityRule other : kEpistemicRules) {
                        epistemic += NoisyShare(of(other));
                      }
                      return NoisyShare(of(rule)) -
                             epistemic / static_cast<double>(kEpistemicRules.size());
                    });
  }
}

// |ln(estimation variance / target variance)|, mean over arms, at one iteration.
double VarianceMismatch(const BanditTrace& trace, int iteration, const ConalBandit& bandit) {
  double sum = 0;
  for (int arm = 0; arm < trace.arms; ++arm) {
    const double target = bandit.sigma(arm) * bandit.sigma(arm);
    sum += std::abs(std::log(trace.At(iteration, arm).member_variance / target));
  }
  return sum / trace.arms;
}

void AddVarianceClaims(BanditClaims& claims, const ConalBandit& bandit) {
  claims.Within({"14a", "The target's variance eventually equals the estimate's", "L509",
                 "under td, last iteration: mean over arms of |ln(V_tau[theta] / V[r])|; within "
                 "ln 1.25"},
                {kTd}, std::log(1.25), [&bandit](const Traces& of) {
                  return VarianceMismatch(of(kTd), static_cast<int>(of(kTd).mse.size()) - 1,
                                          bandit);
                });
  claims.Positive(
      {"14b", "but not at the start of the training", "L509",
       "under td: mean over arms of |ln(V_tau[theta] / V[r])| at the first minus at the "
       "last iteration; > 0"},
      {kTd}, [&bandit](const Traces& of) {
        const int last = static_cast<int>(of(kTd).mse.size()) - 1;
        return VarianceMismatch(of(kTd), 0, bandit) - VarianceMismatch(of(kTd), last, bandit);
      });
}

std::vector<Claim> RunSchemesFigure(const FigureContext& context) {
  const BanditOptions options = BanditOptionsFrom(context.settings);
  const ConalBandit bandit(options.bandit);
  const BanditRuns runs = RunBandits(context, {{options, SchemesFrom(context.settings)}})[0];
  WriteConeCsv(context, options.bandit);
  WriteBanditCsv(context, runs);
  WriteTermsCsv(context, runs, bandit);

  BanditClaims claims(runs);
  AddOverSamplingClaims(claims);
  AddVarianceClaims(claims, bandit);
  constexpr auto kUper = PriorityRule::kInfoGainDelta;
  constexpr auto kEpistemicDelta = PriorityRule::kEpistemicDelta;
  claims.Positive({"18", "Prioritizing by E_delta alone is unsatisfactory: A is needed",
                   "L222-L223", "ln(final MSE of epistemic_delta / of info_gain_delta); > 0"},
                  {kEpistemicDelta, kUper}, FinalMseLogRatio(kEpistemicDelta, kUper));
  return claims.Take();
}

}  // namespace

Figure MakeFigure() {
  return {.id = "bandit-schemes",
          .title = "Conal bandit: every priority, per arm, with the terms of the uncertainties",
          .default_seeds = 10,
          .settings = BanditSettings(AllRules()),
          .run = RunSchemesFigure};
}

}  // namespace uper::experiments::bandit::schemes
