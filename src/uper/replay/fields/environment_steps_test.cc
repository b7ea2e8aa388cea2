#include "uper/replay/fields/environment_steps.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "uper/base/random.h"

namespace uper::environment_steps_test {
namespace {

double Number(std::byte byte) { return static_cast<double>(byte); }

// Observations and steps of one byte; s' of the reset is 100 + episode.
struct Driver {
  explicit Driver(std::size_t n) : steps({.environments = 2, .n_steps = n, .discount = 0.5}) {}

  // Each transition as "s a s' reward discount".
  std::vector<std::vector<double>> Add(std::size_t environment, int action, double reward, int s_t,
                                       bool terminated, bool truncated, Autoreset autoreset,
                                       int final_s = -1) {
    const auto step = static_cast<std::byte>(action);
    const auto observation = static_cast<std::byte>(s_t);
    const auto last = static_cast<std::byte>(final_s);
    std::vector<std::vector<double>> result;
    for (const FoldedTransition& t : steps.Add(environment,
                                               {.step = &step,
                                                .reward = reward,
                                                .terminated = terminated,
                                                .truncated = truncated,
                                                .observation = &observation,
                                                .final_observation = final_s < 0 ? nullptr : &last},
                                               autoreset)) {
      result.push_back({Number(*t.s_tm1), Number(*t.step), Number(*t.s_t), t.reward, t.discount});
    }
    return result;
  }
  void Start(std::size_t environment, int s) {
    const auto observation = static_cast<std::byte>(s);
    steps.Start(environment, &observation);
  }

  EnvironmentSteps steps;
};

using Rows = std::vector<std::vector<double>>;

TEST(EnvironmentStepsTest, ThreeStepsByHand) {
  Driver driver(3);
  driver.Start(0, 1);
  EXPECT_EQ(driver.Add(0, 11, 1, 2, false, false, Autoreset::kDisabled), Rows{});
  EXPECT_EQ(driver.Add(0, 12, 2, 3, false, false, Autoreset::kDisabled), Rows{});
  EXPECT_EQ(driver.Add(0, 13, 4, 4, false, false, Autoreset::kDisabled),
            (Rows{{1, 11, 4, 1 + 1 + 1, 0.125}}));
  EXPECT_EQ(driver.Add(0, 14, 8, 5, false, true, Autoreset::kDisabled),  // cut: bootstraps
            (Rows{{2, 12, 5, 2 + 2 + 2, 0.125}, {3, 13, 5, 4 + 4, 0.25}, {4, 14, 5, 8, 0.5}}));
  EXPECT_FALSE(driver.steps.IsInEpisode(0));
  EXPECT_THROW(driver.Add(0, 1, 1, 1, false, false, Autoreset::kDisabled), Error);
}

TEST(EnvironmentStepsTest, AResetStepIsNoTransition) {
  Driver driver(2);
  driver.Start(0, 1);
  EXPECT_EQ(driver.Add(0, 11, 1, 2, true, false, Autoreset::kNextStep), (Rows{{1, 11, 2, 1, 0}}));
  EXPECT_EQ(driver.Add(0, 99, 0, 7, false, false, Autoreset::kNextStep), Rows{});  // the reset
  EXPECT_EQ(driver.Add(0, 12, 2, 8, true, false, Autoreset::kNextStep), (Rows{{7, 12, 8, 2, 0}}));
}

TEST(EnvironmentStepsTest, TheFinalObservationComesApart) {
  Driver driver(2);
  driver.Start(1, 1);
  EXPECT_THROW(driver.Add(1, 11, 1, 50, true, false, Autoreset::kSameStep), Error);
  EXPECT_EQ(driver.Add(1, 11, 1, 50, true, false, Autoreset::kSameStep, /*final_s=*/2),
            (Rows{{1, 11, 2, 1, 0}}));
  EXPECT_EQ(driver.Add(1, 12, 2, 51, false, true, Autoreset::kSameStep, /*final_s=*/3),
            (Rows{{50, 12, 3, 2, 0.5}}));
  EXPECT_TRUE(driver.steps.IsInEpisode(1));
  EXPECT_FALSE(driver.steps.IsInEpisode(0));
}

// Random episodes of two environments in turns, against whole episodes in lists.
TEST(EnvironmentStepsTest, RandomEpisodesAgainstAModel) {
  for (const std::size_t n : {1, 2, 3, 5}) {
    RandomStream random(n, "test");
    Driver driver(n);
    struct Episode {
      std::vector<int> observations, actions;
      std::vector<double> rewards;
    };
    std::vector<Episode> episodes(2);
    std::vector<std::size_t> emitted(2, 0);
    for (std::size_t e = 0; e < 2; ++e) {
      driver.Start(e, static_cast<int>(e));
      episodes[e].observations = {static_cast<int>(e)};
    }
    for (int i = 0; i < 2000; ++i) {
      const std::size_t e = random.UniformInt(2);
      Episode& episode = episodes[e];
      const bool last = random.Bernoulli(0.2), terminated = last && random.Bernoulli(0.5);
      const int first = static_cast<int>(random.UniformInt(200));
      episode.actions.push_back(static_cast<int>(random.UniformInt(200)));
      episode.rewards.push_back(static_cast<double>(random.UniformInt(8)));
      episode.observations.push_back(static_cast<int>(random.UniformInt(200)));
      const Rows rows =
          driver.Add(e, episode.actions.back(), episode.rewards.back(),
                     last ? first : episode.observations.back(), terminated, last && !terminated,
                     Autoreset::kSameStep, last ? episode.observations.back() : -1);
      const std::size_t length = episode.actions.size();
      const std::size_t until = last ? length : length >= n ? length - n + 1 : 0;
      ASSERT_EQ(rows.size(), until - emitted[e]);
      for (const auto& row : rows) {
        const std::size_t t = emitted[e]++;
        const std::size_t end = std::min(t + n, length);
        double reward = 0, discount = 1;
        for (std::size_t k = t; k < end; ++k, discount *= 0.5)
          reward += discount * episode.rewards[k];
        ASSERT_EQ(row, (std::vector<double>{static_cast<double>(episode.observations[t]),
                                            static_cast<double>(episode.actions[t]),
                                            static_cast<double>(episode.observations[end]), reward,
                                            last && terminated ? 0 : discount}));
      }
      if (!last) continue;
      episode = {.observations = {first}, .actions = {}, .rewards = {}};
      emitted[e] = 0;
    }
  }
}

TEST(EnvironmentStepsTest, SavedStepsContinue) {
  Driver driver(3), copy(3);
  driver.Start(0, 1);
  driver.Add(0, 11, 1, 2, false, false, Autoreset::kNextStep);
  driver.Add(0, 12, 2, 3, false, false, Autoreset::kNextStep);
  std::vector<std::byte> bytes;
  ByteWriter writer(bytes);
  driver.steps.Save(writer);
  ByteReader reader(bytes);
  copy.steps.Load(reader);
  reader.ExpectEnd();
  EXPECT_EQ(driver.Add(0, 13, 4, 4, true, false, Autoreset::kNextStep),
            copy.Add(0, 13, 4, 4, true, false, Autoreset::kNextStep));
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    Driver other(3);
    ByteReader cut(std::span(std::as_const(bytes)).first(length));
    EXPECT_THROW(other.steps.Load(cut), Error);
  }
}

}  // namespace
}  // namespace uper::environment_steps_test
