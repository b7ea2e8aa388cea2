#include "uper/core/n_step.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "uper/base/error.h"
#include "uper/base/random.h"

namespace uper {
namespace {

TEST(NStepTest, HandValues) {
  // 1 + 0.5 * 2 + 0.5 * 0.25 * 4 = 2.5; discount 0.5 * 0.25 * 0.5 = 0.0625.
  const std::vector<double> rewards = {1, 2, 4};
  const std::vector<double> discounts = {0.5, 0.25, 0.5};
  const NStepReturn result = AccumulateNStep(rewards, discounts);
  EXPECT_DOUBLE_EQ(result.reward, 2.5);
  EXPECT_DOUBLE_EQ(result.discount, 0.0625);
}

TEST(NStepTest, NoStepsAreTheIdentity) {
  const NStepReturn result = AccumulateNStep({}, {});
  EXPECT_EQ(result.reward, 0);
  EXPECT_EQ(result.discount, 1);
}

TEST(NStepTest, OneStepIsItself) {
  const std::vector<double> reward = {3};
  const std::vector<double> discount = {0.99};
  EXPECT_EQ(AccumulateNStep(reward, discount).reward, 3);
  EXPECT_EQ(AccumulateNStep(reward, discount).discount, 0.99);
}

TEST(NStepTest, ZeroDiscountCutsEverythingBehindIt) {
  // 1 + 0.5 * 2; the reward after the zero is not read.
  const std::vector<double> rewards = {1, 2, std::numeric_limits<double>::infinity()};
  const std::vector<double> discounts = {0.5, 0, 0.5};
  const NStepReturn result = AccumulateNStep(rewards, discounts);
  EXPECT_DOUBLE_EQ(result.reward, 2);
  EXPECT_EQ(result.discount, 0);
}

TEST(NStepTest, EqualsTheDirectSum) {
  RandomStream random(1, "n-step");
  for (int trial = 0; trial < 200; ++trial) {
    const std::size_t n = 1 + random.UniformInt(10);
    std::vector<double> rewards(n);
    std::vector<double> discounts(n);
    for (double& reward : rewards) reward = random.Normal();
    for (double& discount : discounts) discount = random.Bernoulli(0.1) ? 0 : random.Uniform();
    double expected = 0;
    double all = 1;
    for (std::size_t i = 0; i < n; ++i) {
      double product = 1;
      for (std::size_t j = 0; j < i; ++j) product *= discounts[j];
      expected += product * rewards[i];
      all *= discounts[i];
    }
    const NStepReturn result = AccumulateNStep(rewards, discounts);
    EXPECT_NEAR(result.reward, expected, 1e-13);
    EXPECT_NEAR(result.discount, all, 1e-15);
  }
}

TEST(NStepTest, LengthsAreChecked) {
  const std::vector<double> two = {1, 2};
  const std::vector<double> one = {0.9};
  EXPECT_THROW(AccumulateNStep(two, one), Error);
}

}  // namespace
}  // namespace uper
