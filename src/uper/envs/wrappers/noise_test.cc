#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <set>

#include "uper/envs/registry.h"
#include "uper/envs/wrappers/action_noise.h"
#include "uper/envs/wrappers/noisy_channels.h"
#include "uper/envs/wrappers/reward_noise.h"
#include "uper/envs/wrappers/time_limit.h"

namespace uper {
namespace {

// Has five actions. The observation is the last executed action (0 at first) as a float. The reward
// is 0, and an episode ends after ten steps of two frames each.
class EchoEnvironment final : public Environment {
 public:
  const EnvironmentSpec& spec() const override { return spec_; }

 protected:
  void DoReset(std::span<std::byte> observation) override {
    steps_ = 0;
    Observe(0, observation);
  }
  TimeStep DoStep(int action, std::span<std::byte> observation) override {
    Observe(static_cast<float>(action), observation);
    const bool over = ++steps_ == 10;
    return {.discount = over ? 0.0 : 1.0, .terminated = over, .frames = 2};
  }
  void DoSaveState(ByteWriter& writer) const override { writer.Write(steps_); }
  void DoRestoreState(ByteReader& reader) override { steps_ = reader.Read<int>(); }

 private:
  static void Observe(float value, std::span<std::byte> observation) {
    std::memcpy(observation.data(), &value, sizeof(value));
  }

  const EnvironmentSpec spec_ = {.name = "echo",
                                 .actions = 5,
                                 .element = EnvironmentSpec::Element::kFloat32,
                                 .max_frames_per_step = 2};
  int steps_ = 0;
};

// Plays an environment with float observations.
class FloatPlayer {
 public:
  explicit FloatPlayer(Environment& environment)
      : environment_(environment), memory_(environment.spec().observation_bytes()) {
    environment_.Reset(memory_);
  }

  TimeStep Step(int action) {
    if (over_) environment_.Reset(memory_);
    const TimeStep step = environment_.Step(action, memory_);
    over_ = step.last();
    return step;
  }
  float seen(std::size_t element) const {
    float value;
    std::memcpy(&value, memory_.data() + 4 * element, sizeof(value));
    return value;
  }

 private:
  Environment& environment_;
  std::vector<std::byte> memory_;
  bool over_ = false;
};

// Every chance has the result that Tell() sets: true repeats the action.
class ToldRandom final : public GameRandom {
 public:
  void Tell(bool repeat) { repeat_ = repeat; }

  bool Chance(DrawPurpose, double) override { return repeat_; }
  int Below(DrawPurpose, int) override { return 0; }
  void Save(ByteWriter&) const override {}
  void Restore(ByteReader&) override {}

 private:
  bool repeat_ = true;
};

TEST(StickyActionsTest, RepeatsTheActionExecutedLastAlsoOverEpisodes) {
  auto random = std::make_unique<ToldRandom>();
  ToldRandom& told = *random;
  StickyActions sticky(std::make_unique<EchoEnvironment>(), 0.5, std::move(random));
  FloatPlayer player(sticky);
  player.Step(3);
  EXPECT_EQ(player.seen(0), 0) << "nothing was executed before: action 0";
  told.Tell(false);
  player.Step(3);
  EXPECT_EQ(player.seen(0), 3);
  told.Tell(true);
  player.Step(4);
  player.Step(1);
  EXPECT_EQ(player.seen(0), 3) << "the action executed, not the one given";
  while (!player.Step(2).last()) {
  }
  EXPECT_FALSE(player.Step(2).noisy) << "sticky actions are part of the task";
  EXPECT_EQ(player.seen(0), 3) << "a reset forgets nothing";
}

TEST(StickyActionsTest, RepeatsWithItsProbability) {
  StickyActions sticky(std::make_unique<EchoEnvironment>(), 0.1,
                       std::make_unique<StreamGameRandom>(RandomStream(1, "sticky")));
  FloatPlayer player(sticky);
  int repeated = 0;
  constexpr int kSteps = 40'000;
  for (int i = 0; i < kSteps; ++i) {
    player.Step(i % 5);
    repeated += player.seen(0) != static_cast<float>(i % 5) ? 1 : 0;
  }
  // Of 40,000 with probability 0.1: standard deviation 60. (Five repetitions in a row, which would
  // look like none, happen once in 100,000 steps.)
  EXPECT_NEAR(repeated, 4'000, 240);
}

TEST(RandomActionsTest, DrawsFromAllActionsAndSaysSo) {
  RandomActions random(std::make_unique<EchoEnvironment>(), 0.5, RandomStream(1, "random"));
  FloatPlayer player(random);
  std::map<float, int> executed;
  int noisy = 0;
  constexpr int kSteps = 40'000;
  for (int i = 0; i < kSteps; ++i) {
    const TimeStep step = player.Step(2);
    noisy += step.noisy ? 1 : 0;
    EXPECT_TRUE(step.noisy || player.seen(0) == 2);
    ++executed[player.seen(0)];
  }
  EXPECT_NEAR(noisy, 20'000, 400);           // standard deviation 100
  EXPECT_NEAR(executed[2.0f], 24'000, 400);  // half, and a fifth of the other half: 98
  EXPECT_NEAR(executed[0.0f], 4'000, 240);   // 60
  EXPECT_NEAR(executed[4.0f], 4'000, 240);
}

TEST(TimeLimitTest, TruncatesByFramesUnlessTheEpisodeEndsAnyway) {
  TimeLimit limited(std::make_unique<EchoEnvironment>(), 5);
  FloatPlayer player(limited);
  for (int episode = 0; episode < 3; ++episode) {
    EXPECT_FALSE(player.Step(0).last());
    EXPECT_FALSE(player.Step(0).last());
    const TimeStep last = player.Step(0);  // the sixth frame
    EXPECT_TRUE(last.truncated);
    EXPECT_FALSE(last.terminated);
    EXPECT_EQ(last.discount, 1);
  }
  TimeLimit equal(std::make_unique<EchoEnvironment>(), 20);
  FloatPlayer other(equal);
  TimeStep last;
  for (int i = 0; i < 10; ++i) last = other.Step(0);
  EXPECT_TRUE(last.terminated);
  EXPECT_FALSE(last.truncated);
}

TEST(RewardNoiseTest, EverywhereItIsGaussianOfThatStandardDeviation) {
  RewardNoise noise(std::make_unique<EchoEnvironment>(), 3, 1, RandomStream(1, "noise"));
  FloatPlayer player(noise);
  double sum = 0;
  double squares = 0;
  constexpr int kSteps = 40'000;
  for (int i = 0; i < kSteps; ++i) {
    const TimeStep step = player.Step(i % 5);
    EXPECT_TRUE(step.noisy);
    sum += step.reward;
    squares += step.reward * step.reward;
  }
  EXPECT_NEAR(sum / kSteps, 0, 4 * 3 / std::sqrt(kSteps));
  EXPECT_NEAR(squares / kSteps, 9, 4 * 9 * std::sqrt(2.0 / kSteps));
}

TEST(RewardNoiseTest, TheStateOfTheActionDecidesTheSameInEveryRun) {
  // The observation in which an action is taken -> whether its step is noisy.
  const auto noisy_states = [](std::uint64_t seed) {
    RewardNoise noise(std::make_unique<EchoEnvironment>(), 1, 0.5, RandomStream(seed, "noise"));
    FloatPlayer player(noise);
    std::map<float, std::set<bool>> noisy;
    for (int i = 0; i < 9; ++i) {  // one episode: no reset in between
      const float before = player.seen(0);
      const TimeStep step = player.Step((i + 1) % 5);
      noisy[before].insert(step.noisy);
      EXPECT_EQ(step.noisy, step.reward != 0);
    }
    return noisy;
  };
  const auto states = noisy_states(1);
  EXPECT_EQ(states, noisy_states(2));
  std::set<bool> kinds;
  for (const auto& [state, answers] : states) {
    EXPECT_EQ(answers.size(), 1u) << state;
    kinds.insert(answers.begin(), answers.end());
    std::byte bytes[4];
    std::memcpy(bytes, &state, 4);
    EXPECT_EQ(*answers.begin(), ObservationHash(bytes) < 0.5);
  }
  EXPECT_EQ(kinds.size(), 2u) << "some of the five states are noisy, some are not";
}

TEST(RewardNoiseTest, HashIsSpreadEvenly) {
  // All frames of length 100 with one or two ones: 5050 of them, much alike.
  constexpr int kBins = 10;
  std::array<int, kBins> bins{};
  std::set<double> values;
  for (int i = 0; i < 100; ++i) {
    for (int j = i; j < 100; ++j) {
      std::array<std::byte, 100> frame{};
      frame[static_cast<std::size_t>(i)] = frame[static_cast<std::size_t>(j)] = std::byte{1};
      const double value = ObservationHash(frame);
      values.insert(value);
      ++bins[static_cast<std::size_t>(value * kBins)];
    }
  }
  EXPECT_EQ(values.size(), 5050u);
  for (const int count : bins) EXPECT_NEAR(count, 505, 4 * 21.3);  // sqrt(5050 * 0.1 * 0.9)
}

TEST(NoisyChannelsTest, AreCoinFlipsBesideTheCleanChannels) {
  NoisyChannels noisy(std::make_unique<EchoEnvironment>(), 2, RandomStream(1, "tv"));
  EXPECT_EQ(noisy.spec().channels, 3);
  FloatPlayer player(noisy);
  std::array<int, 2> ones{};
  int equal = 0;
  constexpr int kSteps = 10'000;
  for (int i = 0; i < kSteps; ++i) {
    EXPECT_FALSE(player.Step(i % 5).noisy);
    EXPECT_EQ(player.seen(0), static_cast<float>(i % 5));
    for (std::size_t channel = 0; channel < 2; ++channel) {
      EXPECT_TRUE(player.seen(1 + channel) == 0 || player.seen(1 + channel) == 1);
      ones[channel] += player.seen(1 + channel) == 1 ? 1 : 0;
    }
    equal += player.seen(1) == player.seen(2) ? 1 : 0;
  }
  for (const int count : {ones[0], ones[1], equal}) EXPECT_NEAR(count, 5'000, 200);
}

// Observations without noisy channels, and ends of episodes, for fixed actions.
std::vector<int> Story(const EnvironmentOptions& options) {
  const auto game = MakeEnvironment("minatar/asterix", options, 5, 0);
  std::vector<std::byte> frame(game->spec().observation_bytes());
  std::vector<int> story;
  bool over = true;
  for (int i = 0; i < 2'000; ++i) {
    if (over) game->Reset(frame);
    over = game->Step(i * i % 6, frame).last();
    story.push_back(over ? 1 : 0);
    for (std::size_t cell = 0; cell < 100; ++cell) {
      for (std::size_t channel = 0; channel < 4; ++channel) {
        const auto channels = static_cast<std::size_t>(game->spec().channels);
        story.push_back(std::to_integer<int>(frame[cell * channels + channel]));
      }
    }
  }
  return story;
}

TEST(WrapEnvironmentTest, NoiseOnPurposeLeavesTheDrawsOfTheGameAlone) {
  const std::vector<int> plain = Story({});
  EXPECT_EQ(plain, Story(NoisyMinAtarOptions()));
  EXPECT_NE(plain, Story({.random_action_probability = 0.1}));
  EXPECT_NE(plain, Story({.sticky = 0}));
}

TEST(WrapEnvironmentTest, ShareOfNoisyStepsIsAboutTheShareOfNoisyStates) {
  const auto game = MakeEnvironment("minatar/asterix", NoisyMinAtarOptions(), 5, 0);
  std::vector<std::byte> frame(game->spec().observation_bytes());
  RandomStream policy(1, "policy");
  int noisy = 0;
  bool over = true;
  constexpr int kSteps = 20'000;
  for (int i = 0; i < kSteps; ++i) {
    if (over) game->Reset(frame);
    const TimeStep step = game->Step(static_cast<int>(policy.UniformInt(6)), frame);
    over = step.last();
    noisy += step.noisy ? 1 : 0;
  }
  // The count is not binomial, because the first states of an episode are repeated.
  EXPECT_NEAR(noisy / static_cast<double>(kSteps), 0.25, 0.1);
}

}  // namespace
}  // namespace uper
