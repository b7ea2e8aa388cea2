#include "experiments/posterior/figure.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "experiments/framework/figure_runner_for_tests.h"
#include "experiments/posterior/claims.h"
#include "experiments/posterior/model.h"
#include "uper/base/random.h"
#include "uper/core/other_decompositions.h"
#include "uper/core/quantile.h"

namespace uper::experiments::posterior {
namespace {

PosteriorOptions SmallOptions() {
  PosteriorOptions options;
  options.ensemble.quantiles = 10;
  options.samples = 2000;
  options.learning_rate = {.initial = 0.05, .half_life = 500};
  return options;
}

// Prior N(0, 1), data variance 1: after samples 3 and 5 the precision is 3 and the mean 8 / 3.
TEST(GaussianPosteriorTest, ByHand) {
  GaussianPosterior posterior{PosteriorOptions{}};
  EXPECT_EQ(posterior.mean(), 0);
  EXPECT_EQ(posterior.variance(), 1);
  posterior.Observe(3);
  posterior.Observe(5);
  EXPECT_DOUBLE_EQ(posterior.mean(), 8.0 / 3);
  EXPECT_DOUBLE_EQ(posterior.variance(), 1.0 / 3);
}

TEST(GaussianPosteriorTest, OneSampleIsTheFormulaOfCore) {
  PosteriorOptions options;
  options.prior_mean = -1;
  options.prior_sd = 0.5;
  options.data_sd = 3;
  GaussianPosterior posterior(options);
  posterior.Observe(2);
  EXPECT_DOUBLE_EQ(posterior.variance(), PosteriorVariance(0.25, 9));
  EXPECT_DOUBLE_EQ(posterior.mean(), (-1 / 0.25 + 2.0 / 9) * posterior.variance());
}

TEST(PosteriorModelTest, RecordTimes) {
  EXPECT_EQ(RecordTimes(4), (std::vector<int>{0, 1, 2, 3, 4}));
  const std::vector<int> times = RecordTimes(200'000);
  EXPECT_EQ(times.back(), 200'000);
  EXPECT_TRUE(std::is_sorted(times.begin(), times.end(), std::less_equal<>()));
  EXPECT_NEAR(static_cast<double>(std::count_if(times.begin(), times.end(),
                                                [](int t) { return t > 1000 && t <= 10'000; })),
              40, 1);
}

// The members start at draws of the prior: mean 0 and variance 1 over members, each with the
// variance of an even grid of half-width 1, (1 - 1 / M^2) / 3, and E equal to the variance of
// means.
TEST(PosteriorModelTest, StartsAtThePrior) {
  const PosteriorOptions options = SmallOptions();
  double mean = 0;
  double variance = 0;
  constexpr int kSeeds = 200;
  for (int seed = 1; seed <= kSeeds; ++seed) {
    PosteriorOptions one = options;
    one.samples = 1;
    const PosteriorPoint start = SimulatePosterior(one, seed).points.front();
    EXPECT_NEAR(start.aleatoric, (1 - 1.0 / 100) / 3, 1e-12);
    EXPECT_NEAR(start.epistemic, start.means_variance, 1e-12);
    EXPECT_EQ(start.bayes_variance, 1);
    mean += start.ensemble_mean / kSeeds;
    variance += start.epistemic / kSeeds;
  }
  // Five standard errors of 200 x 50 normals: 0.05 for the mean, sqrt(2) 0.05 for the variance,
  // whose expectation is 49 / 50.
  EXPECT_NEAR(mean, 0, 0.05);
  EXPECT_NEAR(variance, 0.98, 0.0707);
}

// With a step that annihilates noise the quantiles find the data's; A follows. The tolerance is ten
// times the spread seen between seeds (0.006), and a fifth of what the prior's spread would give.
TEST(PosteriorModelTest, QuantilesFindTheData) {
  PosteriorOptions options = SmallOptions();
  options.samples = 40'000;
  options.learning_rate = {.initial = 0.05, .half_life = 5000};
  const PosteriorTrace trace = SimulatePosterior(options, 4);
  for (std::size_t i = 0; i < 10; ++i) {
    EXPECT_NEAR(trace.quantiles[i], 2 + NormalQuantile(QuantileMidpoint(i, 10)), 0.06) << i;
  }
  EXPECT_NEAR(trace.points.back().ensemble_mean, 2, 0.03);
  EXPECT_LT(trace.points.back().epistemic, 0.01);
  EXPECT_EQ(trace.bayes_means.size(), 40'001u);
  EXPECT_DOUBLE_EQ(trace.points.back().bayes_variance, 1.0 / 40'001);
  // Bayes' mean is the samples' shrunk mean: within five posterior standard deviations.
  EXPECT_NEAR(trace.points.back().bayes_mean, 2, 5 / std::sqrt(40'001.0));
}

// Half of the members take part in a sample: after one, about half of 50 have moved.
TEST(PosteriorModelTest, MembersAreUpdatedWithProbabilityOneHalf) {
  PosteriorOptions options = SmallOptions();
  options.ensemble = {.members = 50, .quantiles = 1};
  options.learning_rate = {.initial = 1e-3, .half_life = 1e12};
  options.samples = 1;
  double moved = 0;
  constexpr int kSeeds = 100;
  for (int seed = 1; seed <= kSeeds; ++seed) {
    const PosteriorTrace trace = SimulatePosterior(options, seed);
    // One quantile, tau = 1/2: every updated member moves by +-1/2 step. Nearly all samples are
    // above nearly all members, so the mean moves by about (share) * step / 2.
    moved += (trace.points.back().ensemble_mean - trace.points.front().ensemble_mean) / 0.5e-3;
  }
  // P(sample > member) - P(sample < member) = 2 Phi(2 / sqrt 2) - 1 = 0.8427; half of that. The
  // per-seed s.d. is below 0.4: five standard errors are 0.2, and all members would give 0.84.
  EXPECT_NEAR(moved / kSeeds, 0.4214, 0.2);
}

TEST(PosteriorModelTest, DependsOnTheSeedAlone) {
  const PosteriorOptions options = SmallOptions();
  const PosteriorTrace first = SimulatePosterior(options, 1);
  EXPECT_EQ(first.quantiles, SimulatePosterior(options, 1).quantiles);
  EXPECT_NE(first.quantiles, SimulatePosterior(options, 2).quantiles);
}

TEST(PosteriorFigureTest, CorrelationByHand) {
  const std::vector<double> x = {1, 2, 3};
  EXPECT_DOUBLE_EQ(Correlation(x, std::vector<double>{2, 4, 6}), 1);
  EXPECT_DOUBLE_EQ(Correlation(x, std::vector<double>{3, 2, 1}), -1);
  EXPECT_NEAR(Correlation(x, std::vector<double>{1, 3, 1}), 0, 1e-15);
  EXPECT_EQ(Correlation(x, std::vector<double>{5, 5, 5}), 0);
}

const std::map<std::string, std::string> kSmall = {
    {"samples", "3000"}, {"quantiles", "10"}, {"learning_rate", "0.05"}, {"half_life", "600"}};

TEST(PosteriorFigureTest, ResultsDoNotDependOnJobs) {
  FigureTestRunner one("posterior-one");
  FigureTestRunner three("posterior-three");
  one.Run(MakeFigure(), 4, 1, kSmall);
  three.Run(MakeFigure(), 4, 3, kSmall);
  EXPECT_EQ(one.Files(), three.Files());
  EXPECT_EQ(one.Files().size(), 2u);
}

TEST(PosteriorFigureTest, Claims) {
  FigureTestRunner runner("posterior-claims");
  const std::vector<Claim> claims = runner.Run(MakeFigure(), 4, 2, kSmall);
  EXPECT_EQ(claims.size(), 11u);
  EXPECT_EQ(FindClaim(claims, "27c").verdict, Verdict::kHolds);
  EXPECT_LT(FindClaim(claims, "29b").interval.low, FindClaim(claims, "29b").interval.high);
  // Posterior variance after 3000 samples is 1 / 3001 of the prior's.
  EXPECT_NEAR(FindClaim(claims, "28c").interval.value, std::log(3001.0 / 100), 1e-12);
  // Variance of N(0, 1)'s ten mid-point quantiles, computed apart (statistics.NormalDist).
  EXPECT_NEAR(FindClaim(claims, "29d").interval.value, 1 - 0.8797873367997093, 1e-12);
}

}  // namespace
}  // namespace uper::experiments::posterior
