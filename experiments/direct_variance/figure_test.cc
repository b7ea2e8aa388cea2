#include "experiments/direct_variance/figure.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "experiments/direct_variance/arms_model.h"
#include "experiments/direct_variance/bandit_model.h"
#include "experiments/direct_variance/chain_model.h"
#include "experiments/framework/figure_runner_for_tests.h"
#include "uper/base/random.h"
#include "uper/core/moments.h"

namespace uper::experiments::direct_variance {
namespace {

TEST(VarianceArmsTest, TheUpdateIsRegressionOnTheSquaredError) {
  const VarianceArmsTrace trace = SimulateVarianceArms({}, 1);
  EXPECT_EQ(trace.identity_gap, 0);
  EXPECT_EQ(trace.arms.size(), 5u);
}

// The last step 0.005 / 2^5 averages about 2 / step = 12,800 squared normals: relative s.d.
// sqrt(2 / 12,800) = 0.0125. Five of them; the arms' variances differ by factors of 1.7 and more.
TEST(VarianceArmsTest, FindsTheVarianceOfEveryArm) {
  const VarianceArmsOptions options;
  const ConalBandit bandit(options.bandit);
  const VarianceArmsTrace trace = SimulateVarianceArms(options, 3);
  for (int arm = 0; arm < 5; ++arm) {
    const VarianceArmPoint& end = trace.arms[arm].back();
    const double sigma = bandit.sigma(arm);
    EXPECT_EQ(end.updates, 40'000);
    EXPECT_NEAR(end.variance / (sigma * sigma), 1, 0.0625) << "arm " << arm;
    EXPECT_NEAR(end.mean, 2, 5 * sigma * std::sqrt(1.0 / 12'800)) << "arm " << arm;
  }
}

TEST(VarianceArmsTest, StartsWhereThePaperSays) {
  for (int seed = 1; seed <= 50; ++seed) {
    VarianceArmsOptions options;
    options.updates = 1;
    for (const auto& points : SimulateVarianceArms(options, seed).arms) {
      EXPECT_GE(points.front().variance, 0);
      EXPECT_LT(points.front().variance, 0.1);
      EXPECT_LT(std::abs(points.front().mean), 1);
    }
  }
}

// One state, never staying: the return is one reward.
TEST(VarianceChainTest, OneStateWithoutStaying) {
  VarianceChainOptions options;
  options.sigmas = {1.5};
  options.stay = 0;
  const ChainTruth truth = SolveChain(options);
  EXPECT_DOUBLE_EQ(truth.value[0], 1);
  EXPECT_DOUBLE_EQ(truth.variance[0], 2.25);
}

// One state, undiscounted, staying with probability 1/2 and rewards that are exactly 1: the return
// is a geometric number of steps, mean 2 and variance q / (1 - q)^2 = 2.
TEST(VarianceChainTest, GeometricNumberOfSteps) {
  VarianceChainOptions options;
  options.sigmas = {0};
  options.stay = 0.5;
  options.discount = 1;
  const ChainTruth truth = SolveChain(options);
  EXPECT_DOUBLE_EQ(truth.value[0], 2);
  EXPECT_DOUBLE_EQ(truth.variance[0], 2);
}

// Two states without staying: V_0 = 1 + g, Var_0 = sigma_0^2 + g^2 sigma_1^2.
TEST(VarianceChainTest, TwoStatesWithoutStaying) {
  VarianceChainOptions options;
  options.sigmas = {1, 2};
  options.stay = 0;
  options.discount = 0.5;
  const ChainTruth truth = SolveChain(options);
  EXPECT_DOUBLE_EQ(truth.value[0], 1.5);
  EXPECT_DOUBLE_EQ(truth.variance[0], 2);
}

double DrawReturn(const VarianceChainOptions& options, std::size_t s, RandomStream& stream) {
  double sum = 0;
  double discount = 1;
  while (s < options.sigmas.size()) {
    sum += discount * (options.reward_mean + options.sigmas[s] * stream.Normal());
    discount *= options.discount;
    if (!stream.Bernoulli(options.stay)) ++s;
  }
  return sum;
}

// Five standard errors from N: Var / N for the mean, (kurtosis - 1) Var^2 / N for the variance,
// with a kurtosis below 4.
TEST(VarianceChainTest, TheSolutionMeetsMonteCarlo) {
  VarianceChainOptions options;
  options.stay = 0.5;
  const ChainTruth truth = SolveChain(options);
  RandomStream stream(9, "variance chain test");
  constexpr int kReturns = 200'000;
  for (std::size_t s = 0; s < options.sigmas.size(); ++s) {
    std::vector<double> returns(kReturns);
    for (double& value : returns) value = DrawReturn(options, s, stream);
    const Moments moments = ComputeMoments<double>(returns);
    EXPECT_NEAR(moments.mean, truth.value[s], 5 * std::sqrt(truth.variance[s] / kReturns));
    EXPECT_NEAR(moments.variance / truth.variance[s], 1, 5 * std::sqrt(3.0 / kReturns));
  }
}

// As for the arms: last step 0.01 / 2^5, s.d. about sqrt(step) = 0.018; five of them.
TEST(VarianceChainTest, LearnsTheVarianceOfTheReturn) {
  const VarianceChainOptions options;
  const ChainTruth truth = SolveChain(options);
  const std::vector<ChainPoint> points = SimulateVarianceChain(options, 2);
  EXPECT_EQ(points.back().episodes, options.episodes);
  for (std::size_t s = 0; s < options.sigmas.size(); ++s) {
    EXPECT_NEAR(points.back().variance[s] / truth.variance[s], 1, 0.09) << s;
    EXPECT_NEAR(points.back().value[s] / truth.value[s], 1, 0.09) << s;
  }
}

TEST(VarianceChainTest, LogarithmicTimes) {
  EXPECT_EQ(LogarithmicTimes(3), (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(LogarithmicTimes(40'000).back(), 40'000);
}

DirectBanditOptions ShortBandit() {
  DirectBanditOptions options;
  options.iterations = 4;
  options.steps_per_iteration = 500;
  return options;
}

TEST(DirectBanditTest, DependsOnSeedAndScheme) {
  const auto mse = [](DirectScheme scheme, int seed) {
    return SimulateDirectBandit(ShortBandit(), scheme, seed).mse;
  };
  const std::vector<double> first = mse(DirectScheme::kDirectUper, 1);
  EXPECT_EQ(first, mse(DirectScheme::kDirectUper, 1));
  EXPECT_NE(first, mse(DirectScheme::kDirectUper, 2));
  for (const DirectScheme other :
       {DirectScheme::kUniform, DirectScheme::kTd, DirectScheme::kQuantileUper}) {
    EXPECT_NE(first, mse(other, 1)) << DirectSchemeName(other);
  }
}

// An ensemble of mean 0 and five arms of mean 2: the error starts near 4 and falls.
TEST(DirectBanditTest, Learns) {
  DirectBanditOptions options;
  options.iterations = 20;
  for (const DirectScheme scheme : kDirectSchemes) {
    const std::vector<double> mse = SimulateDirectBandit(options, scheme, 5).mse;
    EXPECT_NEAR(mse.front(), 3.2, 0.4) << DirectSchemeName(scheme);
    EXPECT_LT(mse.back(), 0.6) << DirectSchemeName(scheme);
  }
}

// Five standard errors of 20,000 draws are 0.014. The TD error grows with the noise; UPER with the
// true variance in its denominator turns to the quiet arm instead.
TEST(DirectBanditTest, SchemesDrawWhatTheyPrefer) {
  DirectBanditOptions options;
  options.iterations = 20;
  const auto shares = [&](DirectScheme scheme) {
    return SimulateDirectBandit(options, scheme, 6).draw_share;
  };
  const std::vector<double> uniform = shares(DirectScheme::kUniform);
  for (const double share : uniform) EXPECT_NEAR(share, 0.2, 0.0142);
  EXPECT_GT(shares(DirectScheme::kTd).back(), 0.23);
  EXPECT_LT(shares(DirectScheme::kDirectUper).back(), 0.17);
  EXPECT_GT(shares(DirectScheme::kDirectUper).front(), 0.3);
}

// Uniform replay gives each arm a fifth of the steps, so the learner sees 40,000 squared errors of
// each, as on the arms alone; the mean here comes from the slower quantiles, which the quiet arm's
// estimate still carries.
TEST(DirectBanditTest, TheDirectVarianceIsLearnedInPassing) {
  const DirectBanditTrace trace = SimulateDirectBandit({}, DirectScheme::kUniform, 1);
  const ConalBandit bandit{ConalBanditOptions{}};
  EXPECT_EQ(trace.mse.size(), 200u);
  for (int arm = 1; arm < 5; ++arm) {
    const double truth = bandit.sigma(arm) * bandit.sigma(arm);
    EXPECT_NEAR(trace.direct_variance[arm] / truth, 1, 0.0625) << "arm " << arm;
  }
}

// A in the denominator: an arm believed to be quieter is drawn more, so its estimate gets closer.
TEST(DirectBanditTest, TheLearnedVarianceReachesThePriority) {
  DirectBanditOptions low = ShortBandit();
  DirectBanditOptions high = ShortBandit();
  low.variance_step.initial = 0;  // keep the start
  high.variance_step.initial = 0;
  low.variance_start_high = 1e-3;
  high.variance_start_high = 1e3;
  EXPECT_NE(SimulateDirectBandit(low, DirectScheme::kDirectUper, 1).mse,
            SimulateDirectBandit(high, DirectScheme::kDirectUper, 1).mse);
  EXPECT_EQ(SimulateDirectBandit(low, DirectScheme::kQuantileUper, 1).mse,
            SimulateDirectBandit(high, DirectScheme::kQuantileUper, 1).mse);
}

TEST(DirectVarianceFigureTest, FilesAndClaimsDoNotDependOnJobs) {
  FigureTestRunner one("direct-one");
  FigureTestRunner three("direct-three");
  const std::map<std::string, std::string> small = {{"iterations", "5"}};
  const std::vector<Claim> claims = one.Run(MakeFigure(), 2, 1, small);
  three.Run(MakeFigure(), 2, 3, small);
  EXPECT_EQ(one.Files(), three.Files());
  EXPECT_EQ(FindClaim(claims, "39a").interval.value, 0);
  EXPECT_EQ(FindClaim(claims, "39a").verdict, Verdict::kHolds);
  const Interval arms = FindClaim(claims, "39b").interval;
  EXPECT_LT(arms.low, arms.high);  // the seeds differ
  EXPECT_EQ(FindClaim(claims, "39b").verdict, Verdict::kHolds);
  EXPECT_EQ(FindClaim(claims, "39c").verdict, Verdict::kHolds);
  const std::string mse = one.Files().at("mse.csv");
  EXPECT_EQ(std::count(mse.begin(), mse.end(), '\n'), 1 + 4 * 2 * 5);
}

}  // namespace
}  // namespace uper::experiments::direct_variance
