#include "uper/envs/bandit/conal_bandit.h"

#include <gtest/gtest.h>

#include <cmath>

namespace uper {
namespace {

TEST(ConalBanditTest, HasThePapersArms) {
  const ConalBandit bandit({});
  const double sigmas[] = {0.1, 0.6, 1.1, 1.6, 2.1};  // facts B5
  ASSERT_EQ(bandit.arms(), 5);
  for (int arm = 0; arm < 5; ++arm) {
    EXPECT_DOUBLE_EQ(bandit.mean(arm), 2);
    EXPECT_DOUBLE_EQ(bandit.sigma(arm), sigmas[arm]);
  }
}

TEST(ConalBanditTest, ShiftedMeansFallWithTheNoise) {
  const ConalBandit bandit({.mean_spread = 1});
  const double means[] = {3, 2.75, 2.5, 2.25, 2};  // facts B11
  for (int arm = 0; arm < 5; ++arm) EXPECT_DOUBLE_EQ(bandit.mean(arm), means[arm]);
}

TEST(ConalBanditTest, RewardsHaveTheStatedMoments) {
  const ConalBandit bandit({.mean_spread = 1});
  constexpr int kDraws = 100'000;
  for (int arm = 0; arm < bandit.arms(); ++arm) {
    RandomStream stream(1, "conal bandit test", arm);
    double sum = 0;
    double squares = 0;
    for (int i = 0; i < kDraws; ++i) {
      const double deviation = bandit.DrawReward(arm, stream) - bandit.mean(arm);
      sum += deviation;
      squares += deviation * deviation;
    }
    // Standard errors: sigma / sqrt(n) of the mean, sigma^2 sqrt(2 / n) of the mean square; 4 of
    // them.
    const double sigma = bandit.sigma(arm);
    EXPECT_NEAR(sum / kDraws, 0, 4 * sigma / std::sqrt(kDraws)) << "arm " << arm;
    EXPECT_NEAR(squares / kDraws, sigma * sigma, 4 * sigma * sigma * std::sqrt(2.0 / kDraws));
  }
}

}  // namespace
}  // namespace uper
