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

void AwaitStep(Actors& actors, std::size_t i) {
  for (int looks = 0; !actors.IsDone(i); ++looks) {
    if (!actors.PlayOneHere()) SpinOrYield(looks);
  }
}

// The step as text.
std::string Words(const ActorStep& played) {
  std::string words = played.was_reset ? "reset" : std::to_string(played.action);
  if (!played.was_reset) {
    words += " " + std::to_string(played.step.reward) + (played.step.last() ? " last" : "");
  }
  for (const std::byte pixel : played.observation) words += "," + std::to_string(int(pixel));
  return words;
}

void Choose(Actors& actors, std::size_t i) {
  if (actors[i].in_episode) actors.DrawExploration(i, 1);
}

// The steps as text, [actor][round]. With `ahead`, random actors begin the next round early, and
// observations go to memory of the caller.
std::vector<std::vector<std::string>> Play(int workers, bool ahead) {
  Actors actors({.environments = kGames, .workers = workers, .seed = 3}, Games());
  std::vector<std::byte> memory[2];
  for (auto& one : memory) one.resize(kGames * actors.spec().observation_bytes());
  std::vector<std::vector<std::string>> played(kGames);
  RandomStream who(5, "who is ahead");
  for (int round = 0; round < kRounds; ++round) {
    if (ahead && !actors.AnyIsStarted()) actors.SetObservationBuffer(memory[round % 2]);
    for (std::size_t i = 0; i < actors.size(); ++i) {
      if (actors.IsStarted(i)) continue;
      (round + i) % 3 == 0 ? actors.PlayHere(i) : actors.Start(i);
    }
    if (ahead) {
      bool first = true;
      for (std::size_t i = 0; i < actors.size(); ++i) {
        if (who.Uniform() < 0.5 || round + 1 == kRounds) continue;
        AwaitStep(actors, i);
        Choose(actors, i);
        if (first) actors.SetObservationBuffer(memory[(round + 1) % 2]);
        first = false;
        actors.Start(i);
        EXPECT_TRUE(actors.IsAhead(i) && actors.CountAhead() > 0);
      }
    }
    for (std::size_t i = 0; i < actors.size(); ++i) {
      AwaitStep(actors, i);
      played[i].push_back(Words(actors.StepOf(i)));
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
  actors.Start(0);
  EXPECT_THROW(actors.Start(0), Error) << "it has not played";
  while (actors.PlayOneHere()) {
  }
  EXPECT_THROW(actors.NextRound(), Error) << "the other has not played";
  EXPECT_THROW(actors.Start(0), Error) << "its observation would be lost";
  actors.Start(1);
  std::vector<std::byte> memory(2 * actors.spec().observation_bytes());
  actors.SetObservationBuffer(memory);
  while (actors.PlayOneHere()) {
  }
  actors.Start(0);
  while (actors.PlayOneHere()) {
  }
  EXPECT_THROW(actors.Start(0), Error);
  EXPECT_THROW(actors.SetObservationBuffer(memory), Error) << "one is ahead";
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
    for (std::size_t i = 0; i < 3; ++i) actors.Start(i);
    AwaitStep(actors, 0);
    EXPECT_TRUE(actors.StepOf(0).was_reset);
    AwaitStep(actors, 1);
    EXPECT_THROW(actors.StepOf(1), std::runtime_error);
    EXPECT_TRUE(actors.IsDone(2)) << "nothing is under way";
  }
}

}  // namespace
}  // namespace uper
