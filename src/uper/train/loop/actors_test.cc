#include "uper/train/loop/actors.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "uper/base/threads/spin_wait.h"
#include "uper/train/loop/stacked_game_for_tests.h"

namespace uper {
namespace {

constexpr int kGames = 5;
constexpr int kRounds = 200;

EnvironmentMaker Games() {
  return [](std::uint64_t index) { return std::make_unique<StaticEnvironment>(index, 2, 3, 1); };
}

void AwaitPlayed(Actors& actors, std::size_t i) {
  for (int looks = 0; !actors.HasPlayed(i); ++looks) {
    if (!actors.Help()) SpinOrYield(looks);
  }
}

// What was played, in words.
std::string Words(const Played& played) {
  std::string words = played.was_reset ? "reset" : std::to_string(played.action);
  if (!played.was_reset) {
    words += " " + std::to_string(played.step.reward) + (played.step.last() ? " last" : "");
  }
  for (const std::byte pixel : played.observation) words += "," + std::to_string(int(pixel));
  return words;
}

void Choose(Actors& actors, std::size_t i) {
  actors.ChooseActions(
      {&i, 1}, [](std::size_t) { return 1.0; }, [](std::span<float>) {});
}

// [actor][round]; `ahead`: whoever has played begins the next round when that lets it, and rounds
// end in memory of the caller's.
std::vector<std::vector<std::string>> Play(int workers, bool ahead) {
  Actors actors({.environments = kGames, .workers = workers, .seed = 3}, Games());
  std::vector<std::byte> memory[2];
  for (auto& one : memory) one.resize(kGames * actors.spec().observation_bytes());
  std::vector<std::vector<std::string>> played(kGames);
  RandomStream who(5, "who is ahead");
  for (int round = 0; round < kRounds; ++round) {
    if (ahead && !actors.AnyHasBegun()) actors.UseMemory(memory[round % 2]);
    for (std::size_t i = 0; i < actors.size(); ++i) {
      if (actors.HasBegun(i)) continue;
      (round + i) % 3 == 0 ? actors.PlayNow(i) : actors.Begin(i);
    }
    if (ahead) {
      bool first = true;
      for (std::size_t i = 0; i < actors.size(); ++i) {
        if (who.Uniform() < 0.5 || round + 1 == kRounds) continue;
        AwaitPlayed(actors, i);
        Choose(actors, i);
        if (first) actors.UseMemory(memory[(round + 1) % 2]);
        first = false;
        actors.Begin(i);
        EXPECT_TRUE(actors.IsAhead(i) && actors.CountAhead() > 0);
      }
    }
    for (std::size_t i = 0; i < actors.size(); ++i) {
      AwaitPlayed(actors, i);
      played[i].push_back(Words(actors.PlayedBy(i)));
      if (!actors.IsAhead(i)) Choose(actors, i);
    }
    actors.NextRound();
  }
  return played;
}

TEST(ActorsTest, TheSameIsPlayedInStepAndAhead) {
  const auto expected = Play(0, false);
  EXPECT_EQ(Play(3, false), expected);
  for (const int workers : {0, 1, 4}) EXPECT_EQ(Play(workers, true), expected) << workers;
}

TEST(ActorsTest, NobodyIsTwoRoundsAhead) {
  Actors actors({.environments = 2}, Games());
  actors.Begin(0);
  EXPECT_THROW(actors.Begin(0), Error) << "it has not played";
  while (actors.Help()) {
  }
  EXPECT_THROW(actors.NextRound(), Error) << "the other has not played";
  EXPECT_THROW(actors.Begin(0), Error) << "its observation would be lost";
  actors.Begin(1);
  std::vector<std::byte> memory(2 * actors.spec().observation_bytes());
  actors.UseMemory(memory);
  while (actors.Help()) {
  }
  actors.Begin(0);
  while (actors.Help()) {
  }
  EXPECT_THROW(actors.Begin(0), Error);
  EXPECT_THROW(actors.UseMemory(memory), Error) << "one is ahead";
}

class Failing final : public Environment {
 public:
  const EnvironmentSpec& spec() const override { return spec_; }

 private:
  void DoReset(std::span<std::byte>) override { throw std::runtime_error("no console"); }
  TimeStep DoStep(int, std::span<std::byte>) override { return {}; }
  void DoSaveState(ByteWriter&) const override {}
  void DoRestoreState(ByteReader&) override {}

  const EnvironmentSpec spec_{.name = "failing", .actions = 1, .height = 2, .width = 3};
};

TEST(ActorsTest, WhatAnEnvironmentThrowsReachesTheCaller) {
  for (const int workers : {0, 2}) {
    Actors actors({.environments = 3, .workers = workers},
                  [](std::uint64_t index) -> std::unique_ptr<Environment> {
                    if (index == 1) return std::make_unique<Failing>();
                    return std::make_unique<StaticEnvironment>(index, 2, 3, 1);
                  });
    for (std::size_t i = 0; i < 3; ++i) actors.Begin(i);
    AwaitPlayed(actors, 0);
    EXPECT_TRUE(actors.PlayedBy(0).was_reset);
    AwaitPlayed(actors, 1);
    EXPECT_THROW(actors.PlayedBy(1), std::runtime_error);
    EXPECT_TRUE(actors.HasPlayed(2)) << "nothing is under way";
  }
}

}  // namespace
}  // namespace uper
