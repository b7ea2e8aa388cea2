#include "experiments/bandit/runs.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "uper/base/check.h"
#include "uper/base/files/csv_writer.h"

namespace uper::experiments::bandit {
namespace {

using Type = SettingInfo::Type;

constexpr int kFinalIterations = 10;

std::vector<std::string> AllRuleNames() {
  std::vector<std::string> names;
  for (const PriorityRule rule : AllPriorityRules()) names.emplace_back(PriorityRuleName(rule));
  return names;
}

std::string Joined(const std::vector<PriorityRule>& rules) {
  std::string text;
  for (const PriorityRule rule : rules) {
    if (!text.empty()) text += ',';
    text += PriorityRuleName(rule);
  }
  return text;
}

int FirstFinalIteration(const BanditTrace& trace) {
  return std::max(0, static_cast<int>(trace.mse.size()) - kFinalIterations);
}

// Mean of value(iteration) from `first` to the end.
template <typename Value>
double MeanFrom(const BanditTrace& trace, int first, const Value& value) {
  const int end = static_cast<int>(trace.mse.size());
  double sum = 0;
  for (int iteration = first; iteration < end; ++iteration) sum += value(iteration);
  return sum / (end - first);
}

}  // namespace

std::vector<SettingInfo> BanditSettings(const std::vector<PriorityRule>& schemes) {
  return {
      {.key = "schemes",
       .type = Type::kList,
       .default_text = Joined(schemes),
       .description = "priority rules to run, separated by commas",
       .choices = AllRuleNames()},
      NumberSetting("members", Type::kInteger, 30, 1, 64, "agents in the ensemble"),
      NumberSetting("quantiles", Type::kInteger, 30, 1, 1000, "quantiles of each agent"),
      NumberSetting("iterations", Type::kInteger, 200, 1, 100000, "rows of the CSV files"),
      NumberSetting("steps_per_iteration", Type::kInteger, 1000, 1, 1e6,
                    "replay updates between two rows"),
      NumberSetting("learning_rate", Type::kNumber, 0.005, 0, 1, "first step size"),
      NumberSetting("half_life_steps", Type::kNumber, 40000, 1, 1e12,
                    "steps in which the step size halves"),
      NumberSetting("priority_exponent", Type::kNumber, 0.7, 0, 4,
                    "alpha in P = p^alpha / sum p^alpha"),
      {.key = "importance_weights",
       .type = Type::kFlag,
       .default_text = "false",
       .description = "correct the step by importance weights (exponent 0.5 to 1)"},
      {.key = "fresh_reward_first",
       .type = Type::kFlag,
       .default_text = "false",
       .description = "draw the new reward before the update instead of after it"},
      NumberSetting("noise_min", Type::kNumber, 0.1, 0, 1e6,
                    "standard deviation of the quietest arm"),
      NumberSetting("noise_slope", Type::kNumber, 2, 0, 1e6,
                    "what the noisiest arm's standard deviation has beyond noise_min"),
  };
}

BanditOptions BanditOptionsFrom(const Settings& settings) {
  return {.bandit = {.noise_min = settings.Number("noise_min"),
                     .noise_slope = settings.Number("noise_slope")},
          .ensemble = {.members = static_cast<std::size_t>(settings.Integer("members")),
                       .quantiles = static_cast<std::size_t>(settings.Integer("quantiles"))},
          .iterations = settings.Integer("iterations"),
          .steps_per_iteration = settings.Integer("steps_per_iteration"),
          .learning_rate = {.initial = settings.Number("learning_rate"),
                            .half_life = settings.Number("half_life_steps")},
          .priority_exponent = settings.Number("priority_exponent"),
          .importance_weights = settings.Flag("importance_weights"),
          .fresh_reward_first = settings.Flag("fresh_reward_first")};
}

std::vector<PriorityRule> SchemesFrom(const Settings& settings) {
  std::vector<PriorityRule> schemes;
  for (const std::string& name : settings.List("schemes")) {
    const PriorityRule rule = PriorityRuleFromName(name).value();
    if (std::find(schemes.begin(), schemes.end(), rule) == schemes.end()) schemes.push_back(rule);
  }
  return schemes;
}

std::vector<BanditRuns> RunBandits(const FigureContext& context,
                                   const std::vector<BanditPlan>& plans) {
  struct Task {
    const BanditPlan* plan;
    PriorityRule rule;
    BanditTrace* trace;
    std::uint64_t seed;
  };
  std::vector<BanditRuns> runs(plans.size());
  std::vector<Task> tasks;
  for (std::size_t p = 0; p < plans.size(); ++p) {
    for (const PriorityRule rule : plans[p].schemes) {
      std::vector<BanditTrace>& traces = runs[p][rule];
      traces.resize(static_cast<std::size_t>(context.seeds));
      for (std::size_t seed = 1; seed <= traces.size(); ++seed) {
        tasks.push_back({&plans[p], rule, &traces[seed - 1], seed});
      }
    }
  }
  RunTasks(context, tasks.size(), [&](std::size_t index) {
    const Task& task = tasks[index];
    BanditOptions options = task.plan->options;
    options.rule = task.rule;
    *task.trace = SimulateBandit(options, task.seed);
  });
  return runs;
}

void WriteBanditCsv(const FigureContext& context, const BanditRuns& runs,
                    const std::string& suffix) {
  CsvWriter mse(context.folder / ("mse" + suffix + ".csv"), {"scheme", "seed", "iteration", "mse"});
  CsvWriter arms(context.folder / ("arms" + suffix + ".csv"),
                 {"scheme", "seed", "iteration", "arm", "probability", "estimate", "epistemic",
                  "target_distance_sq", "aleatoric", "draw_share", "error_sq", "member_variance"});
  for (const auto& [rule, traces] : runs) {
    const std::string_view scheme = PriorityRuleName(rule);
    for (std::size_t seed = 1; seed <= traces.size(); ++seed) {
      const BanditTrace& trace = traces[seed - 1];
      for (std::size_t i = 0; i < trace.mse.size(); ++i) {
        mse.Row(scheme, seed, i + 1, trace.mse[i]);
        for (int arm = 0; arm < trace.arms; ++arm) {
          const ArmRecord& record = trace.At(static_cast<int>(i), arm);
          arms.Row(scheme, seed, i + 1, arm, record.probability, record.estimate, record.epistemic,
                   record.target_distance_sq, record.aleatoric, record.draw_share, record.error_sq,
                   record.member_variance);
        }
      }
    }
  }
  mse.Commit();
  arms.Commit();
}

void WriteConeCsv(const FigureContext& context, const ConalBanditOptions& options) {
  const ConalBandit bandit(options);
  CsvWriter cone(context.folder / "cone.csv", {"arm", "mean", "sigma"});
  for (int arm = 0; arm < bandit.arms(); ++arm) cone.Row(arm, bandit.mean(arm), bandit.sigma(arm));
  cone.Commit();
}

double FinalMse(const BanditTrace& trace) {
  return MeanFrom(trace, FirstFinalIteration(trace), [&](int i) { return trace.mse[i]; });
}

double MeanLogMse(const BanditTrace& trace) {
  return MeanFrom(trace, 0, [&](int i) { return std::log(trace.mse[i]); });
}

double DrawShare(const BanditTrace& trace, int arm) {
  return OverallMean(trace, arm, &ArmRecord::draw_share);
}

double FinalMean(const BanditTrace& trace, int arm, double ArmRecord::* field) {
  return MeanFrom(trace, FirstFinalIteration(trace),
                  [&](int i) { return trace.At(i, arm).*field; });
}

double OverallMean(const BanditTrace& trace, int arm, double ArmRecord::* field) {
  return MeanFrom(trace, 0, [&](int i) { return trace.At(i, arm).*field; });
}

double MeanLog(const BanditTrace& trace, int arm, double ArmRecord::* field) {
  return MeanFrom(trace, 0, [&](int i) { return std::log(trace.At(i, arm).*field); });
}

std::vector<double> BanditClaims::PerSeed(const std::vector<PriorityRule>& needed,
                                          const Statistic& statistic) {
  std::size_t seeds = 0;
  for (const PriorityRule rule : needed) {
    const auto found = runs_.find(rule);
    if (found == runs_.end()) return {};
    seeds = found->second.size();
  }
  std::vector<double> values;
  for (std::size_t seed = 0; seed < seeds; ++seed) {
    values.push_back(statistic(
        [&](PriorityRule rule) -> const BanditTrace& { return runs_.at(rule).at(seed); }));
  }
  return values;
}

void BanditClaims::Positive(ClaimText text, const std::vector<PriorityRule>& needed,
                            const Statistic& statistic) {
  const std::vector<double> values = PerSeed(needed, statistic);
  if (!values.empty()) claims_.push_back(ClaimPositive(std::move(text), values));
}

void BanditClaims::Within(ClaimText text, const std::vector<PriorityRule>& needed, double margin,
                          const Statistic& statistic) {
  const std::vector<double> values = PerSeed(needed, statistic);
  if (!values.empty()) claims_.push_back(ClaimWithin(std::move(text), values, margin));
}

BanditClaims::Statistic FinalMseLogRatio(PriorityRule worse, PriorityRule better) {
  return [=](const BanditClaims::Traces& of) {
    return std::log(FinalMse(of(worse)) / FinalMse(of(better)));
  };
}

BanditClaims::Statistic MeanLogMseDifference(PriorityRule worse, PriorityRule better) {
  return [=](const BanditClaims::Traces& of) {
    return MeanLogMse(of(worse)) - MeanLogMse(of(better));
  };
}

}  // namespace uper::experiments::bandit
