#include "experiments/bandit/figure.h"

#include <cmath>

#include "experiments/bandit/runs.h"

namespace uper::experiments::bandit {
namespace {

constexpr auto kTd = PriorityRule::kTd;
constexpr auto kCounts = PriorityRule::kCounts;
constexpr auto kUper = PriorityRule::kInfoGainDelta;
constexpr auto kOracle = PriorityRule::kOracle;
constexpr auto kUniform = PriorityRule::kUniform;

const std::vector<PriorityRule> kSchemes = {kTd, kCounts, kUper, kOracle, kUniform};

// Claim 9 calls errors comparable if they are within this factor. It was fixed before the runs.
const double kComparable = std::log(1.5);

// Least-squares slope of y on x.
double Slope(const std::vector<double>& x, const std::vector<double>& y) {
  const double n = static_cast<double>(x.size());
  double mean_x = 0;
  double mean_y = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    mean_x += x[i] / n;
    mean_y += y[i] / n;
  }
  double covariance = 0;
  double variance = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    covariance += (x[i] - mean_x) * (y[i] - mean_y);
    variance += (x[i] - mean_x) * (x[i] - mean_x);
  }
  return covariance / variance;
}

// Slope over the arms of ln(mean squared error during training) on sigma.
double ErrorSlopeOnNoise(const BanditTrace& trace, const ConalBandit& bandit) {
  std::vector<double> sigma;
  std::vector<double> log_error;
  for (int arm = 0; arm < trace.arms; ++arm) {
    sigma.push_back(bandit.sigma(arm));
    log_error.push_back(std::log(OverallMean(trace, arm, &ArmRecord::error_sq)));
  }
  return Slope(sigma, log_error);
}

void AddErrorClaims(BanditClaims& claims) {
  claims.Positive({"2a", "UPER beats PER in final MSE", "L349",
                   "ln(final MSE of td / of info_gain_delta), mean of iterations 191-200; > 0"},
                  {kTd, kUper}, FinalMseLogRatio(kTd, kUper));
  claims.Positive({"2b", "Inverse counts beat PER in final MSE", "L349",
                   "ln(final MSE of td / of counts); > 0"},
                  {kTd, kCounts}, FinalMseLogRatio(kTd, kCounts));
  claims.Positive({"3a", "UPER beats PER in training speed", "L349",
                   "mean over iterations of ln MSE: td - info_gain_delta; > 0"},
                  {kTd, kUper}, MeanLogMseDifference(kTd, kUper));
  claims.Positive({"3b", "Inverse counts beat PER in training speed", "L349",
                   "mean over iterations of ln MSE: td - counts; > 0"},
                  {kTd, kCounts}, MeanLogMseDifference(kTd, kCounts));
  claims.Positive({"6a", "Inverse counts outperform the TD error", "L351",
                   "mean over iterations of ln MSE: td - counts; > 0"},
                  {kTd, kCounts}, MeanLogMseDifference(kTd, kCounts));
  claims.Positive({"6b", "Inverse counts do not outperform UPER", "L351",
                   "ln(final MSE of counts / of info_gain_delta); > 0"},
                  {kCounts, kUper}, FinalMseLogRatio(kCounts, kUper));
  claims.Within({"9", "UPER is comparable to the oracle", "L353, L509",
                 "ln(final MSE of info_gain_delta / of oracle); within +-ln 1.5"},
                {kUper, kOracle}, kComparable, FinalMseLogRatio(kUper, kOracle));
}

void AddSamplingClaims(BanditClaims& claims) {
  using Traces = BanditClaims::Traces;
  claims.Positive({"4a", "The TD error over-samples the noisiest arm", "L329, L349",
                   "share of td's draws on the noisiest arm minus 1/arms; > 0"},
                  {kTd}, [](const Traces& of) {
                    return DrawShare(of(kTd), NoisyArm(of(kTd))) - 1.0 / of(kTd).arms;
                  });
  claims.Positive(
      {"4b", "to the cost of not sampling the quietest arm", "L329, L349",
       "1/arms minus the share of td's draws on the quietest arm; > 0"},
      {kTd}, [](const Traces& of) { return 1.0 / of(kTd).arms - DrawShare(of(kTd), kQuietArm); });
  claims.Positive({"5a", "UPER selects the stable arm more than the TD error does", "L329",
                   "share of draws on the quietest arm: info_gain_delta - td; > 0"},
                  {kUper, kTd}, [](const Traces& of) {
                    return DrawShare(of(kUper), kQuietArm) - DrawShare(of(kTd), kQuietArm);
                  });
  claims.Positive({"5b", "UPER selects the stable arm more than the noisiest one", "L329",
                   "share of info_gain_delta's draws: quietest - noisiest arm; > 0"},
                  {kUper}, [](const Traces& of) {
                    return DrawShare(of(kUper), kQuietArm) -
                           DrawShare(of(kUper), NoisyArm(of(kUper)));
                  });
  claims.Positive({"8a", "UPER samples the noisiest arm less than the TD error does", "L351, L1145",
                   "share of draws on the noisiest arm: td - info_gain_delta; > 0"},
                  {kUper, kTd}, [](const Traces& of) {
                    const int noisy = NoisyArm(of(kTd));
                    return DrawShare(of(kTd), noisy) - DrawShare(of(kUper), noisy);
                  });
  claims.Positive({"8b", "UPER samples the noisiest arm less than uniformly", "L351, L1145",
                   "1/arms minus the share of info_gain_delta's draws on the noisiest arm; > 0"},
                  {kUper}, [](const Traces& of) {
                    return 1.0 / of(kUper).arms - DrawShare(of(kUper), NoisyArm(of(kUper)));
                  });
}

void AddLearningClaims(BanditClaims& claims, const ConalBandit& bandit) {
  using Traces = BanditClaims::Traces;
  claims.Positive(
      {"1", "The TD error contains the sample noise even where the estimate is right", "L342",
       "under td, noisiest arm, last 10 iterations: mean of (stored reward - Q)^2 minus mean of "
       "(true mean - Q)^2, in units of the arm's variance; > 0"},
      {kTd}, [&bandit](const Traces& of) {
        const int noisy = NoisyArm(of(kTd));
        const double noise = FinalMean(of(kTd), noisy, &ArmRecord::target_distance_sq) -
                             FinalMean(of(kTd), noisy, &ArmRecord::error_sq);
        return noise / (bandit.sigma(noisy) * bandit.sigma(noisy));
      });
  claims.Positive({"7a", "Learning speed falls with the arm's variance", "L351",
                   "under uniform draws: slope over arms of ln(mean squared error during training) "
                   "on sigma; > 0"},
                  {kUniform},
                  [&bandit](const Traces& of) { return ErrorSlopeOnNoise(of(kUniform), bandit); });
  claims.Positive(
      {"7b", "The number of updates does not reflect the distance to the target", "L351",
       "under counts, noisiest against quietest arm: |ln ratio of mean squared errors| minus |ln "
       "ratio of draws|; > 0"},
      {kCounts}, [](const Traces& of) {
        const BanditTrace& trace = of(kCounts);
        const int noisy = NoisyArm(trace);
        const double errors = std::log(OverallMean(trace, noisy, &ArmRecord::error_sq) /
                                       OverallMean(trace, kQuietArm, &ArmRecord::error_sq));
        const double draws = std::log(DrawShare(trace, noisy) / DrawShare(trace, kQuietArm));
        return std::abs(errors) - std::abs(draws);
      });
}

std::vector<Claim> IdenticalStartClaims(const BanditRuns& runs) {
  constexpr auto kPlain = PriorityRule::kInfoGain;
  BanditClaims claims(runs);
  claims.Positive(
      {"19a", "With identical members E is 0 and disagreement alone cannot drive replay",
       "L216, L1089", "identical start: ln(final MSE of info_gain / of info_gain_delta); > 0"},
      {kPlain, kUper}, FinalMseLogRatio(kPlain, kUper));
  claims.Positive(
      {"19b", "With identical members the target distance still drives learning", "L216, L1089",
       "identical start, info_gain_delta: ln(MSE before training / final MSE) - ln 100; > 0"},
      {kUper}, [](const BanditClaims::Traces& of) {
        // The grid's mean is 0 and the true means are 2: the MSE before training is 4.
        return std::log(4 / FinalMse(of(kUper))) - std::log(100.0);
      });
  return claims.Take();
}

std::vector<Claim> RunBanditFigure(const FigureContext& context) {
  const BanditOptions options = BanditOptionsFrom(context.settings);
  BanditOptions identical = options;
  identical.identical_start = true;
  const std::vector<BanditRuns> both = RunBandits(
      context,
      {{options, SchemesFrom(context.settings)}, {identical, {PriorityRule::kInfoGain, kUper}}});
  const BanditRuns& runs = both[0];
  const BanditRuns& identical_runs = both[1];
  WriteConeCsv(context, options.bandit);
  WriteBanditCsv(context, runs);
  WriteBanditCsv(context, identical_runs, "_identical_start");

  BanditClaims claims(runs);
  AddLearningClaims(claims, ConalBandit(options.bandit));
  AddErrorClaims(claims);
  AddSamplingClaims(claims);
  std::vector<Claim> all = claims.Take();
  for (Claim& claim : IdenticalStartClaims(identical_runs)) all.push_back(std::move(claim));
  return all;
}

}  // namespace

Figure MakeFigure() {
  return {.id = "bandit",
          .title = "Conal bandit: the cone, mean squared error and arm probabilities",
          .default_seeds = 10,
          .settings = BanditSettings(kSchemes),
          .run = RunBanditFigure};
}

}  // namespace uper::experiments::bandit
