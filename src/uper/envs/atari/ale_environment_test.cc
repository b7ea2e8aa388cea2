// The real emulator; left out of a build without it.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "uper/base/error.h"
#include "uper/base/threads/thread_pool.h"
#include "uper/envs/atari/atari_environment.h"
#include "uper/envs/atari/rom_file.h"
#include "uper/envs/conformance.h"
#include "uper/envs/registry.h"

namespace uper {
namespace {

using Bytes = std::vector<std::byte>;
using Problems = std::vector<std::string>;

Problems ProblemsOf(const std::string& game, const EnvironmentOptions& options) {
  const auto make = [&](std::uint64_t seed, std::uint64_t index) {
    return MakeEnvironment("atari/" + game, options, seed, index);
  };
  return ConformanceProblems(
      make, {.steps = 60, .save_points = 2, .has_lives = true, .damaged_states = 4});
}

TEST(AleEnvironmentTest, ConformsInBothProtocols) {
  EXPECT_EQ(ProblemsOf("breakout", {}), Problems{});
  EXPECT_EQ(ProblemsOf("breakout", {.protocol = AtariProtocol::kDopamine}), Problems{});
  EXPECT_EQ(ProblemsOf("pong", {.sticky = 0.1, .time_limit_frames = 50, .cached_reset = false}),
            Problems{});
}

TEST(AleEnvironmentTest, RendersThroughWrappers) {
  const auto environment =
      MakeEnvironment("atari/pong", {.reward_noise_sd = 1, .random_action_probability = 0.1}, 1, 0);
  Bytes observation(environment->spec().observation_bytes());
  environment->Reset(observation);
  Picture picture;
  ASSERT_TRUE(environment->Render(picture));
  ASSERT_EQ(picture.rgb.size(), std::size_t{210} * 160 * 3);
  const std::size_t middle = 3 * (std::size_t{105} * 160 + 80);
  EXPECT_EQ((std::vector(&picture.rgb[middle], &picture.rgb[middle + 3])),
            (std::vector<std::uint8_t>{109, 118, 43}))
      << "the field before the first ball";
}

// All results of some steps of random play over several episodes.
Bytes Play(Environment& environment, int begin, int end) {
  Bytes seen;
  ByteWriter writer(seen);
  Bytes observation(environment.spec().observation_bytes());
  for (int i = begin; i < end; ++i) {
    RandomStream stream(3, "policy", static_cast<std::uint64_t>(i));
    const TimeStep step = environment.Step(
        static_cast<int>(stream.UniformInt(environment.spec().actions)), observation);
    writer.Write(step.reward);
    writer.Write(step.discount);
    if (step.last()) environment.Reset(observation);
    writer.WriteBlock(observation);
  }
  return seen;
}

// Without the state that ALE does not save, qbert would continue differently.
TEST(AleEnvironmentTest, RestoredGameGoesOnBitForBit) {
  for (const char* game : {"pong", "breakout", "space_invaders", "qbert", "yars_revenge"}) {
    const auto make = [&] { return MakeEnvironment(std::string("atari/") + game, {}, 1, 0); };
    const auto original = make();
    Bytes observation(original->spec().observation_bytes());
    original->Reset(observation);
    Play(*original, 0, 150);
    const Bytes state = original->SaveState();
    const auto copy = make();
    copy->RestoreState(state);
    EXPECT_EQ(Play(*original, 150, 300), Play(*copy, 150, 300)) << game;
    original->RestoreState(state);  // also back in time
    copy->RestoreState(state);
    EXPECT_EQ(Play(*original, 150, 300), Play(*copy, 150, 300)) << game;
  }
}

TEST(AleEnvironmentTest, StateOfAnotherGameOrDamagedIsRefused) {
  const auto pong = MakeEnvironment("atari/pong", {}, 1, 0);
  const auto breakout = MakeEnvironment("atari/breakout", {}, 1, 0);
  const auto expect_corrupt = [](Environment& environment, const Bytes& state) {
    try {
      environment.RestoreState(state);
      ADD_FAILURE() << "accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kCorrupt) << error.what();
    }
  };
  Bytes state = pong->SaveState();
  expect_corrupt(*breakout, state);
  state[state.size() / 2] ^= std::byte{1};
  expect_corrupt(*pong, state);
}

// Episodes start from one state of the console, whatever it played before.
TEST(AleEnvironmentTest, EpisodesStartAlikeWhateverCameBefore) {
  const EnvironmentOptions options = {.sticky = 0, .protocol = AtariProtocol::kDopamine};
  for (const char* game : {"assault", "beam_rider", "krull"}) {  // ALE's own resets differ in these
    const auto environment = MakeEnvironment(std::string("atari/") + game, options, 1, 0);
    Bytes first(environment->spec().observation_bytes()), later(first.size());
    environment->Reset(first);
    const Bytes play = Play(*environment, 0, 40);
    environment->Reset(later);
    EXPECT_EQ(first, later) << game;
    EXPECT_EQ(play, Play(*environment, 0, 40)) << game;
  }
}

// Skipped idle frames leave the console in the same state as played ones.
TEST(AleEnvironmentTest, KeptStartsAreThoseThatArePlayed) {
  for (const char* game : {"pong", "breakout", "qbert", "yars_revenge"}) {
    const auto make = [&] {
      return atari::MakeEmulator(
          {.rom = atari::CheckedRom(atari::DefaultRomFolder(), *atari::FindGame(game))});
    };
    const auto kept = make(), played = make();
    const auto state_of = [](atari::Emulator& emulator) {
      Bytes state;
      ByteWriter writer(state);
      for (int frame = 0; frame < 3; ++frame) emulator.Act(emulator.actions().back());
      emulator.Save(writer);
      return state;
    };
    for (const int frames : {3, 0, 30, 7, 3, 1, 29, 35, 12, 40, 30, 0}) {
      kept->ResetAndIdle(frames);
      played->Reset();
      for (int i = 0; i < frames; ++i) {
        played->Act(0);
        if (played->game_over()) played->Reset();
      }
      EXPECT_TRUE(std::ranges::equal(kept->screen(), played->screen())) << game << ' ' << frames;
      EXPECT_EQ(kept->lives(), played->lives());
      EXPECT_EQ(state_of(*kept), state_of(*played)) << game << ' ' << frames;
    }
  }
}

TEST(AleEnvironmentTest, ResultsDoNotDependOnTheNumberOfThreads) {
  constexpr int kEnvironments = 5;
  std::map<int, std::vector<Bytes>> seen;
  for (const int threads : {1, 2, 4}) {
    std::vector<std::unique_ptr<Environment>> environments;
    for (int i = 0; i < kEnvironments; ++i) {
      environments.push_back(MakeEnvironment("atari/space_invaders", {}, 1, i));
      Bytes observation(environments.back()->spec().observation_bytes());
      environments.back()->Reset(observation);
    }
    ThreadPool pool(threads);
    std::vector<Bytes>& all = seen[threads];
    all.resize(kEnvironments);
    for (int step = 0; step < 60; ++step) {
      pool.ParallelTasks(kEnvironments, [&](int i) {
        const Bytes one = Play(*environments[i], step, step + 1);
        all[i].insert(all[i].end(), one.begin(), one.end());
      });
    }
  }
  EXPECT_EQ(seen[1], seen[2]);
  EXPECT_EQ(seen[1], seen[4]);
  const std::vector<Bytes>& all = seen[1];
  EXPECT_TRUE(std::any_of(all.begin(), all.end(), [&](const Bytes& one) { return one != all[0]; }))
      << "environments of different index start differently";
}

TEST(AleEnvironmentTest, ActionSetsModesAndDifficulties) {
  EXPECT_EQ(MakeEnvironment("atari/pong", {}, 1, 0)->spec().actions, 6);
  EXPECT_EQ(MakeEnvironment("atari/pong", {.full_action_set = true}, 1, 0)->spec().actions, 18);
  EXPECT_EQ(MakeEnvironment("atari/freeway", {.frame_size = 42}, 1, 0)->spec().height, 42);
  EXPECT_NO_THROW(MakeEnvironment("atari/freeway", {.mode = 4, .difficulty = 1}, 1, 0));
  for (const EnvironmentOptions& options :
       {EnvironmentOptions{.mode = 99}, EnvironmentOptions{.difficulty = 9}}) {
    try {
      MakeEnvironment("atari/freeway", options, 1, 0);
      ADD_FAILURE() << "accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kUsage);
      EXPECT_NE(std::string(error.what()).find("the game has only 0, 1"), std::string::npos)
          << error.what();
    }
  }
}

TEST(AleEnvironmentTest, TimeLimitTruncatesAndBootstraps) {
  const auto environment = MakeEnvironment("atari/pong", {.time_limit_frames = 40}, 1, 0);
  Bytes observation(environment->spec().observation_bytes());
  environment->Reset(observation);
  for (int i = 1; i <= 10; ++i) {
    const TimeStep step = environment->Step(0, observation);
    EXPECT_EQ(step.truncated, i == 10);
    EXPECT_EQ(step.discount, 1);
  }
}

}  // namespace
TEST(AleEnvironmentTest, TheTableOfGamesHasTheEmulatorsNumberOfActions) {
  for (const atari::Game& game : atari::kGames) {
    const std::string name = "atari/" + std::string(game.name);
    const auto environment = MakeEnvironment(name, {}, 1, 0);
    EXPECT_EQ(SpecFor(name, {}), environment->spec()) << name;
  }
  EXPECT_NO_THROW(CheckEnvironment("atari/freeway", {.mode = 4, .difficulty = 1}));
  EXPECT_THROW(CheckEnvironment("atari/freeway", {.mode = 99}), Error);
}

}  // namespace uper
