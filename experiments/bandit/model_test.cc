#include "experiments/bandit/model.h"

#include <gtest/gtest.h>

#include <cmath>

namespace uper::experiments::bandit {
namespace {

BanditOptions Short(PriorityRule rule) {
  return {.rule = rule, .iterations = 6, .steps_per_iteration = 500};
}

TEST(BanditSimulationTest, IsDeterministicInTheSeed) {
  const BanditTrace a = SimulateBandit(Short(PriorityRule::kInfoGainDelta), 1);
  const BanditTrace b = SimulateBandit(Short(PriorityRule::kInfoGainDelta), 1);
  const BanditTrace c = SimulateBandit(Short(PriorityRule::kInfoGainDelta), 2);
  EXPECT_EQ(a.mse, b.mse);
  EXPECT_NE(a.mse, c.mse);
}

TEST(BanditSimulationTest, RecordsAreConsistent) {
  const BanditTrace trace = SimulateBandit(Short(PriorityRule::kTd), 1);
  ASSERT_EQ(trace.mse.size(), 6);
  for (int i = 0; i < 6; ++i) {
    double probability = 0;
    double share = 0;
    double error = 0;
    for (int arm = 0; arm < trace.arms; ++arm) {
      const ArmRecord& record = trace.At(i, arm);
      probability += record.probability;
      share += record.draw_share;
      error += record.error_sq / trace.arms;
      EXPECT_NEAR(record.error_sq, std::pow(2 - record.estimate, 2), 1e-12);
    }
    EXPECT_NEAR(probability, 1, 1e-12);
    EXPECT_NEAR(share, 1, 1e-12);
    EXPECT_NEAR(trace.mse[i], error, 1e-15);
  }
}

TEST(BanditSimulationTest, CountsEqualizeTheDraws) {
  // 1 / sqrt(1 + C) pulls every arm towards the same number of draws.
  const BanditTrace trace = SimulateBandit(Short(PriorityRule::kCounts), 1);
  for (int arm = 0; arm < trace.arms; ++arm) {
    EXPECT_NEAR(trace.At(5, arm).probability, 0.2, 0.01) << arm;
  }
}

TEST(BanditSimulationTest, IdenticalStartLeavesDisagreementNoArmButTheFirst) {
  BanditOptions options = Short(PriorityRule::kInfoGain);
  options.identical_start = true;
  const BanditTrace trace = SimulateBandit(options, 1);
  int drawn = 0;
  for (int arm = 0; arm < trace.arms; ++arm) drawn += trace.At(5, arm).probability > 0 ? 1 : 0;
  EXPECT_EQ(drawn, 1);
  options.rule = PriorityRule::kInfoGainDelta;
  EXPECT_LT(SimulateBandit(options, 1).mse.back(), trace.mse.back());
}

TEST(BanditSimulationTest, EverySwitchMatters) {
  const BanditTrace base = SimulateBandit(Short(PriorityRule::kTd), 1);
  const auto differs = [&](auto change) {
    BanditOptions options = Short(PriorityRule::kTd);
    change(options);
    return SimulateBandit(options, 1).mse != base.mse;
  };
  EXPECT_TRUE(differs([](BanditOptions& o) { o.priority_exponent = 0.5; }));
  EXPECT_TRUE(differs([](BanditOptions& o) { o.importance_weights = true; }));
  EXPECT_TRUE(differs([](BanditOptions& o) { o.fresh_reward_first = true; }));
  EXPECT_TRUE(differs([](BanditOptions& o) { o.learning_rate.half_life = 100; }));
  EXPECT_TRUE(differs([](BanditOptions& o) { o.bandit.mean_spread = 1; }));
  EXPECT_TRUE(differs([](BanditOptions& o) { o.identical_start = true; }));
}

TEST(BanditSimulationTest, ImportanceWeightsDoNothingToUniformDraws) {
  BanditOptions options = Short(PriorityRule::kUniform);
  const BanditTrace without = SimulateBandit(options, 1);
  options.importance_weights = true;
  EXPECT_EQ(SimulateBandit(options, 1).mse, without.mse);
}

}  // namespace
}  // namespace uper::experiments::bandit
