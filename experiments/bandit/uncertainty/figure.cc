#include "experiments/bandit/uncertainty/figure.h"

#include "experiments/bandit/runs.h"

namespace uper::experiments::bandit::uncertainty {
namespace {

using Traces = BanditClaims::Traces;

constexpr auto kTd = PriorityRule::kTd;
constexpr auto kUper = PriorityRule::kInfoGainDelta;

void AddClaims(BanditClaims& claims) {
  struct Quantity {
    const char* letter;
    const char* name;
    double ArmRecord::* field;
  };
  const Quantity quantities[] = {
      {"a", "E", &ArmRecord::epistemic},
      {"b", "squared target distance", &ArmRecord::target_distance_sq},
  };
  for (const Quantity& quantity : quantities) {
    const std::string name = quantity.name;
    claims.Positive(
        {std::string("16") + quantity.letter,
         "The quietest arm's " + name + " falls faster under UPER than under TD", "L1145",
         "quietest arm, mean over iterations of ln " + name + ": td - info_gain_delta; > 0"},
        {kTd, kUper}, [field = quantity.field](const Traces& of) {
          return MeanLog(of(kTd), kQuietArm, field) - MeanLog(of(kUper), kQuietArm, field);
        });
    claims.Positive(
        {std::string("17") + quantity.letter, "TD leaves the quietest arm with a higher " + name,
         "L1145",
         "quietest arm, mean of the last 10 iterations of " + name + ": td - info_gain_delta; > 0"},
        {kTd, kUper}, [field = quantity.field](const Traces& of) {
          return FinalMean(of(kTd), kQuietArm, field) - FinalMean(of(kUper), kQuietArm, field);
        });
  }
}

std::vector<Claim> RunUncertaintyFigure(const FigureContext& context) {
  const BanditOptions options = BanditOptionsFrom(context.settings);
  const BanditRuns runs = RunBandits(context, {{options, SchemesFrom(context.settings)}})[0];
  WriteConeCsv(context, options.bandit);
  WriteBanditCsv(context, runs);
  BanditClaims claims(runs);
  AddClaims(claims);
  return claims.Take();
}

}  // namespace

Figure MakeFigure() {
  const auto rules = AllPriorityRules();
  return {.id = "bandit-uncertainty",
          .title = "Conal bandit: E, squared target distance and A of each arm over time",
          .default_seeds = 10,
          .settings = BanditSettings({rules.begin(), rules.end()}),
          .run = RunUncertaintyFigure};
}

}  // namespace uper::experiments::bandit::uncertainty
