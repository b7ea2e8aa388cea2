#include "uper/envs/grid/noisy_grid.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "uper/base/error.h"

namespace uper {
namespace {

constexpr int kUp = 0;
constexpr int kDown = 1;
constexpr int kLeft = 2;
constexpr int kRight = 3;

// 0 S  1 .  2 ~
// 3 .  4 #  5 G
GridMap SmallMap() { return GridMap::Parse("S.~\n.#G\n", "small"); }

TEST(NoisyGridTest, MovesAsTheMapSays) {
  NoisyGrid grid(SmallMap(), {.noise_sd = 0});
  RandomStream noise(1, "noise");
  EXPECT_EQ(grid.state_count(), 6);
  EXPECT_EQ(grid.Reset(), 0);
  EXPECT_EQ(grid.Step(kUp, noise).state, 0);  // edge
  EXPECT_EQ(grid.Step(kDown, noise).state, 3);
  EXPECT_EQ(grid.Step(kRight, noise).state, 3);  // wall
  EXPECT_EQ(grid.Step(kUp, noise).state, 0);
  EXPECT_EQ(grid.Step(kRight, noise).state, 1);
  EXPECT_EQ(grid.Step(kLeft, noise).state, 0);
  EXPECT_EQ(grid.NextState(1, kDown), 1);
  EXPECT_EQ(grid.NextState(2, kDown), 5);
}

TEST(NoisyGridTest, GoalPaysAndTerminates) {
  NoisyGrid grid(SmallMap(), {.goal_reward = 7});
  RandomStream noise(1, "noise");
  grid.Reset();
  GridStep step = grid.Step(kRight, noise);
  EXPECT_EQ(step.reward, 0);
  EXPECT_FALSE(step.terminated || step.truncated);
  grid.Step(kRight, noise);
  step = grid.Step(kDown, noise);
  EXPECT_EQ(step.state, 5);
  EXPECT_EQ(step.reward, 7);
  EXPECT_TRUE(step.terminated);
  EXPECT_FALSE(step.truncated);
  EXPECT_THROW(grid.Step(kUp, noise), Error);  // over
  EXPECT_EQ(grid.Reset(), 0);
  EXPECT_NO_THROW(grid.Step(kUp, noise));
}

TEST(NoisyGridTest, TimeOutTruncatesAndDoesNotTerminate) {
  NoisyGrid grid(SmallMap(), {.timeout_steps = 3});
  RandomStream noise(1, "noise");
  for (int episode = 0; episode < 2; ++episode) {  // the count starts again at Reset()
    grid.Reset();
    EXPECT_FALSE(grid.Step(kUp, noise).truncated);
    EXPECT_FALSE(grid.Step(kUp, noise).truncated);
    const GridStep last = grid.Step(kUp, noise);
    EXPECT_TRUE(last.truncated);
    EXPECT_FALSE(last.terminated);
    EXPECT_THROW(grid.Step(kUp, noise), Error);
  }
}

TEST(NoisyGridTest, GoalOnTheLastStepTerminatesOnly) {
  NoisyGrid grid(SmallMap(), {.timeout_steps = 3});
  RandomStream noise(1, "noise");
  grid.Reset();
  grid.Step(kRight, noise);
  grid.Step(kRight, noise);
  const GridStep last = grid.Step(kDown, noise);
  EXPECT_TRUE(last.terminated);
  EXPECT_FALSE(last.truncated);
}

// Moments of n draws of N(0, sd^2): the mean has standard error sd / sqrt(n), the variance
// sd^2 sqrt(2 / n). Tolerance: 4 standard errors, which for n = 40,000 is 4 % of the mean's unit
// and 2.8 % of the variance: the other reading of N(0, 2), half the variance, is far outside.
TEST(NoisyGridTest, NoiseHasTheGivenMoments) {
  constexpr int kDraws = 40'000;
  for (const double sd : {2.0, std::sqrt(2.0)}) {
    NoisyGrid grid(SmallMap(), {.noise_sd = sd, .timeout_steps = kDraws + 10});
    RandomStream noise(1, "noise");
    grid.Reset();
    grid.Step(kRight, noise);
    double sum = 0;
    double squares = 0;
    for (int draw = 0; draw < kDraws; ++draw) {
      // The first enters the noisy cell, the others bump into the edge there and draw again.
      const double reward = grid.Step(draw == 0 ? kRight : kUp, noise).reward;
      sum += reward;
      squares += reward * reward;
    }
    EXPECT_NEAR(sum / kDraws, 0, 4 * sd / std::sqrt(kDraws));
    EXPECT_NEAR(squares / kDraws, sd * sd, 4 * sd * sd * std::sqrt(2.0 / kDraws));
  }
}

TEST(NoisyGridTest, OnlyNoisyCellsDraw) {
  NoisyGrid grid(SmallMap(), {});
  RandomStream noise(1, "noise");
  grid.Reset();
  EXPECT_EQ(grid.Step(kRight, noise).reward, 0);
  EXPECT_EQ(noise.position(), 0u);
  EXPECT_NE(grid.Step(kRight, noise).reward, 0);
  EXPECT_EQ(noise.position(), 2u);  // one normal number
  EXPECT_EQ(grid.Step(kLeft, noise).reward, 0);
  EXPECT_EQ(noise.position(), 2u);
}

TEST(NoisyGridTest, SameStreamSameEpisode) {
  std::vector<double> rewards[2];
  for (auto& list : rewards) {
    NoisyGrid grid(DefaultGridMap(), {});
    RandomStream noise(5, "noise");
    RandomStream actions(5, "actions");
    grid.Reset();
    for (GridStep step; !step.terminated && !step.truncated;) {
      step = grid.Step(static_cast<int>(actions.UniformInt(4)), noise);
      list.push_back(step.reward);
    }
  }
  EXPECT_EQ(rewards[0], rewards[1]);
}

TEST(NoisyGridTest, RefusesBadOptionsAndActions) {
  EXPECT_THROW(NoisyGrid(SmallMap(), {.noise_sd = -1}), Error);
  EXPECT_THROW(NoisyGrid(SmallMap(), {.noise_sd = NAN}), Error);
  EXPECT_THROW(NoisyGrid(SmallMap(), {.goal_reward = INFINITY}), Error);
  EXPECT_THROW(NoisyGrid(SmallMap(), {.timeout_steps = 0}), Error);
  NoisyGrid grid(SmallMap(), {});
  RandomStream noise(1, "noise");
  EXPECT_THROW(grid.Step(kUp, noise), Error);  // before the first Reset()
  grid.Reset();
  EXPECT_THROW(grid.Step(4, noise), Error);
  EXPECT_THROW(grid.Step(-1, noise), Error);
}

// The default map can be solved by exploration alone: 71 % of random walks find the goal within
// 1000 steps (exact value of the Markov chain 0.7064; 2000 walks have a standard error of 1.0 %).
TEST(NoisyGridTest, RandomWalkFindsTheGoalInAFairShareOfEpisodes) {
  constexpr int kEpisodes = 2'000;
  NoisyGrid grid(DefaultGridMap(), {});
  RandomStream noise(1, "noise");
  RandomStream actions(1, "actions");
  int found = 0;
  for (int episode = 0; episode < kEpisodes; ++episode) {
    grid.Reset();
    GridStep step;
    while (!step.terminated && !step.truncated) {
      step = grid.Step(static_cast<int>(actions.UniformInt(4)), noise);
    }
    found += step.terminated ? 1 : 0;
  }
  EXPECT_NEAR(found / double{kEpisodes}, 0.7064, 4 * 0.0102);
}

}  // namespace
}  // namespace uper
