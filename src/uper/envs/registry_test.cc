#include "uper/envs/registry.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "uper/base/error.h"
#include "uper/envs/atari/emulator.h"

namespace uper {
namespace {

std::string UsageError(const std::string& name, const EnvironmentOptions& options = {}) {
  try {
    MakeEnvironment(name, options, 0, 0);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    return error.what();
  }
  return "nothing was thrown";
}

TEST(RegistryTest, NamesAreThoseOfTheDesign) {
  std::vector<std::string> names = EnvironmentNames();
  const std::set<std::string> known(names.begin(), names.end());
  EXPECT_EQ(known.size(), names.size()) << "a name is listed twice";
  for (const char* name :
       {"bandit/conal", "bandit/shifted", "grid/noisy", "minatar/asterix", "minatar/breakout",
        "minatar/freeway", "minatar/seaquest", "minatar/space_invaders", "noisy-minatar/asterix",
        "noisy-minatar/breakout", "noisy-minatar/freeway", "noisy-minatar/seaquest",
        "noisy-minatar/space_invaders"}) {
    EXPECT_TRUE(known.contains(name)) << name;
  }
  std::erase_if(names, [](const std::string& name) { return !name.starts_with("atari/"); });
  if (atari::EmulatorAvailable()) {
    ASSERT_EQ(names.size(), 57U);
    EXPECT_EQ(names.front(), "atari/alien");
    EXPECT_EQ(names.back(), "atari/zaxxon");
  }
}

// The rewards of 500 steps, added up, and how many of the steps are noisy.
std::pair<double, int> Play(Environment& game) {
  std::vector<std::byte> observation(game.spec().observation_bytes());
  game.Reset(observation);
  std::pair<double, int> played{0, 0};
  for (int i = 0; i < 500; ++i) {
    const TimeStep step = game.Step(i * 7 % 6, observation);
    played.first += step.reward;
    played.second += step.noisy ? 1 : 0;
    if (step.last()) game.Reset(observation);
  }
  return played;
}

TEST(RegistryTest, TheNoisySuiteIsTheGameWithTheSuitesNoise) {
  const auto suite = MakeEnvironment("noisy-minatar/breakout", {}, 1, 0);
  const auto game = MakeEnvironment("minatar/breakout", NoisyMinAtarOptions(), 1, 0);
  EXPECT_EQ(suite->spec().channels, 5);
  const auto played = Play(*suite);
  EXPECT_EQ(played, Play(*game));
  EXPECT_GT(played.second, 0);
}

TEST(RegistryTest, NoiseThatIsGivenReplacesTheSuites) {
  const EnvironmentOptions strong{.reward_noise_sd = 3, .reward_noise_share = 1};
  EXPECT_EQ(Play(*MakeEnvironment("noisy-minatar/breakout", strong, 1, 0)).second, 500);
  EXPECT_EQ(MakeEnvironment("noisy-minatar/breakout", {.noisy_channels = 3}, 1, 0)->spec().channels,
            7);
}

TEST(RegistryTest, EveryNameMakesTheEnvironmentOfThatName) {
  for (const std::string& name : EnvironmentNames()) {
    if (name.starts_with("atari/") && name > "atari/b") continue;  // the others are made alike
    EXPECT_EQ(MakeEnvironment(name, {}, 1, 0)->spec().name, name);
  }
}

TEST(RegistryTest, SpecsFollowTheOptions) {
  const auto seaquest = MakeEnvironment("minatar/seaquest", {}, 1, 0);
  EXPECT_EQ(seaquest->spec().actions, 6);
  EXPECT_EQ(seaquest->spec().observation_bytes(), 1000u);
  const auto breakout =
      MakeEnvironment("minatar/breakout", {.minimal_actions = true, .noisy_channels = 2}, 1, 0);
  EXPECT_EQ(breakout->spec().actions, 3);
  EXPECT_EQ(breakout->spec().channels, 6);
  EXPECT_EQ(MakeEnvironment("bandit/conal", {}, 1, 0)->spec().actions, 5);
}

TEST(RegistryTest, UnknownNameSuggestsTheNearest) {
  EXPECT_EQ(UsageError("minatar/brekout"),
            "unknown environment 'minatar/brekout' (did you mean 'minatar/breakout'?); "
            "`uper list envs` shows all");
  EXPECT_EQ(UsageError("chess"), "unknown environment 'chess'; `uper list envs` shows all");
}

TEST(RegistryTest, OptionsOutOfRangeAreNamed) {
  const auto expect = [](const EnvironmentOptions& options, const std::string& field) {
    EXPECT_NE(UsageError("minatar/asterix", options).find("environment." + field),
              std::string::npos)
        << field;
  };
  expect({.sticky = -0.5}, "sticky");
  expect({.sticky = 1.5}, "sticky");
  expect({.sticky = std::nan("")}, "sticky");
  expect({.time_limit_frames = -2}, "time_limit_frames");
  expect({.mode = -2}, "mode");
  expect({.mode = 256}, "mode");
  expect({.difficulty = -2}, "difficulty");
  expect({.frame_size = 15}, "frame_size");
  expect({.frame_size = 161}, "frame_size");
  expect({.noop_max_frames = -2}, "noop_max_frames");
  expect({.noop_max_frames = 10'001}, "noop_max_frames");
  expect({.reward_noise_sd = -1}, "reward_noise_sd");
  expect({.reward_noise_sd = INFINITY}, "reward_noise_sd");
  expect({.reward_noise_share = 1.1}, "reward_noise_share");
  expect({.noisy_channels = -1}, "noisy_channels");
  expect({.noisy_channels = 65}, "noisy_channels");
  expect({.random_action_probability = std::nan("")}, "random_action_probability");
}

TEST(RegistryTest, ShiftedBanditHasShiftedMeans) {
  const auto mean = [](const std::string& name) {
    const auto bandit = MakeEnvironment(name, {}, 1, 0);
    std::byte observation[1];
    double sum = 0;
    for (int i = 0; i < 10'000; ++i) {
      bandit->Reset(observation);
      sum += bandit->Step(0, observation).reward;
    }
    return sum / 10'000;
  };
  // Arm 0 has sigma 0.1: a standard error of 0.001.
  EXPECT_NEAR(mean("bandit/conal"), 2, 0.005);
  EXPECT_NEAR(mean("bandit/shifted"), 3, 0.005);
}

TEST(RegistryTest, GridShowsTheAgentAndItsNoisyCells) {
  const auto grid = MakeEnvironment("grid/noisy", {}, 1, 0);
  std::vector<std::byte> observation(grid->spec().observation_bytes());
  grid->Reset(observation);
  int noisy = 0;
  for (int i = 0; i < 500; ++i) {
    const TimeStep step = grid->Step(i * 7 % 4, observation);
    int agents = 0;
    for (const std::byte cell : observation) agents += std::to_integer<int>(cell);
    EXPECT_EQ(agents, 1);
    noisy += step.noisy ? 1 : 0;
    EXPECT_TRUE(step.noisy || step.terminated || step.reward == 0);
    if (step.last()) grid->Reset(observation);
  }
  EXPECT_GT(noisy, 0);
}

TEST(OptionsTest, NoisyMinAtarIsValidAndNoisy) {
  EXPECT_NO_THROW(NoisyMinAtarOptions().Validate());
  EXPECT_FALSE(NoisyMinAtarOptions() == EnvironmentOptions{});
}

TEST(RegistryTest, SpecForSaysWhatIsMade) {
  const EnvironmentOptions settings[] = {
      {},
      {.minimal_actions = true},
      {.full_action_set = true, .frame_size = 42},
      {.reward_noise_sd = 1, .random_action_probability = 0.1},
  };
  for (const std::string& name : EnvironmentNames()) {
    if (name.starts_with("atari/") && name > "atari/b") continue;  // see ale_environment_test.cc
    for (const EnvironmentOptions& options : settings) {
      EXPECT_EQ(SpecFor(name, options), MakeEnvironment(name, options, 1, 0)->spec()) << name;
    }
  }
  const EnvironmentOptions noisy{.noisy_channels = 2};
  for (const char* name : {"minatar/breakout", "noisy-minatar/breakout", "grid/noisy"}) {
    EXPECT_EQ(SpecFor(name, noisy), MakeEnvironment(name, noisy, 1, 0)->spec()) << name;
  }
}

TEST(RegistryTest, AtariIsDescribedWithoutEmulatorAndRom) {
  const EnvironmentSpec pong = SpecFor("atari/pong", {.rom_dir = "/nowhere"});
  EXPECT_EQ(pong.actions, 6);
  EXPECT_EQ(pong.frame_stack, 4);
  EXPECT_EQ(pong.max_frames_per_step, 4);
  EXPECT_EQ(pong.input_scale, 1.0F / 255);
  try {
    CheckEnvironment("atari/pong", {.rom_dir = "/nowhere"});
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kMissingData) << error.what();
  }
  EXPECT_THROW(SpecFor("atari/pong", {.noisy_channels = 1}), Error);
}

EnvironmentEntry ArmEntry(const std::string& name) {
  EnvironmentEntry entry = *FindEnvironment("bandit/conal");
  entry.name = name;
  return entry;
}

std::string RegistrationError(const EnvironmentEntry& entry) {
  try {
    RegisterEnvironment(entry);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    return error.what();
  }
  return "nothing was thrown";
}

TEST(RegisterEnvironmentTest, EntriesThatCannotWorkAreRefused) {
  EXPECT_NE(RegistrationError(ArmEntry("bandit/conal")).find("taken"), std::string::npos);
  EXPECT_NE(RegistrationError(ArmEntry("")).find("lower-case"), std::string::npos);
  EXPECT_NE(RegistrationError(ArmEntry("my game")).find("lower-case"), std::string::npos);
  EXPECT_NE(RegistrationError({.name = "test/empty"}).find("`make`"), std::string::npos);
  EXPECT_EQ(FindEnvironment("test/empty"), nullptr);
}

TEST(RegisterEnvironmentTest, ARegisteredEnvironmentIsListedAndMade) {
  EnvironmentEntry entry = ArmEntry("test/arms");
  entry.describe = [](const EnvironmentOptions&) { return EnvironmentSpec{.name = "test/arms"}; };
  RegisterEnvironment(entry);
  EXPECT_EQ(EnvironmentNames().back(), "test/arms");
  EXPECT_EQ(SpecFor("test/arms", {}).name, "test/arms");
  EXPECT_NE(UsageError("test/arm").find("did you mean 'test/arms'?"), std::string::npos);
  // The entry makes bandit/conal, which it does not describe.
  EXPECT_THROW(MakeEnvironment("test/arms", {}, 1, 0), Error);
}

}  // namespace
}  // namespace uper
