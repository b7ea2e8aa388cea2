#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "experiments/bandit/model.h"
#include "experiments/framework/figure.h"
#include "uper/core/priority.h"

namespace uper::experiments::bandit {

// The parts that the four bandit figures share: settings, the runs of schemes x seeds, CSV files
// and the statistics of a trace that claims use.

// The settings of a bandit figure whose default schemes are `schemes`.
std::vector<SettingInfo> BanditSettings(const std::vector<PriorityRule>& schemes);
// The options that the settings describe. The caller sets the rule.
BanditOptions BanditOptionsFrom(const Settings& settings);
// The value of the setting `schemes`.
std::vector<PriorityRule> SchemesFrom(const Settings& settings);

// Traces by scheme, one per seed; seed s = 1..n is at index s - 1.
using BanditRuns = std::map<PriorityRule, std::vector<BanditTrace>>;

// Schemes to simulate with the same options.
struct BanditPlan {
  BanditOptions options;  // the rule is each scheme's own
  std::vector<PriorityRule> schemes;
};
// Simulates every scheme of every plan with every seed of the context.
std::vector<BanditRuns> RunBandits(const FigureContext& context,
                                   const std::vector<BanditPlan>& plans);

// folder/mse<suffix>.csv and folder/arms<suffix>.csv, as documented in docs/files.md.
void WriteBanditCsv(const FigureContext& context, const BanditRuns& runs,
                    const std::string& suffix = "");
// folder/cone.csv: mean and sigma of every arm.
void WriteConeCsv(const FigureContext& context, const ConalBanditOptions& options);

// Mean squared error over the last ten iterations.
double FinalMse(const BanditTrace& trace);
// Mean over all iterations of ln MSE: low when learning is fast.
double MeanLogMse(const BanditTrace& trace);
// Share of all draws that went to an arm.
double DrawShare(const BanditTrace& trace, int arm);
// Mean of one field of an arm over the last ten iterations, and over all of them.
double FinalMean(const BanditTrace& trace, int arm, double ArmRecord::* field);
double OverallMean(const BanditTrace& trace, int arm, double ArmRecord::* field);
// Mean over all iterations of the logarithm of one field of an arm.
double MeanLog(const BanditTrace& trace, int arm, double ArmRecord::* field);

// Collects claims about runs. Omits a claim if one of its schemes was not run.
class BanditClaims {
 public:
  explicit BanditClaims(const BanditRuns& runs) : runs_(runs) {}

  // The trace of a scheme for the current seed.
  using Traces = std::function<const BanditTrace&(PriorityRule)>;
  // One number per seed.
  using Statistic = std::function<double(const Traces&)>;

  void Positive(ClaimText text, const std::vector<PriorityRule>& needed,
                const Statistic& statistic);
  void Within(ClaimText text, const std::vector<PriorityRule>& needed, double margin,
              const Statistic& statistic);

  std::vector<Claim> Take() { return std::move(claims_); }

 private:
  std::vector<double> PerSeed(const std::vector<PriorityRule>& needed, const Statistic& statistic);

  const BanditRuns& runs_;
  std::vector<Claim> claims_;
};

// ln(error of `worse` / error of `better`) of the final MSE: positive when `better` is better.
BanditClaims::Statistic FinalMseLogRatio(PriorityRule worse, PriorityRule better);
// The same for the mean over iterations of ln MSE.
BanditClaims::Statistic MeanLogMseDifference(PriorityRule worse, PriorityRule better);

inline constexpr int kQuietArm = 0;
// The noisiest arm of a trace.
inline int NoisyArm(const BanditTrace& trace) { return trace.arms - 1; }

}  // namespace uper::experiments::bandit
