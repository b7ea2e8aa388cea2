#include "uper/train/loop/calendar.h"

#include <gtest/gtest.h>

#include <string>

namespace uper {
namespace {

RunConfig Periods() {
  RunConfig config;
  config.frames = 100;
  config.evaluate_every_frames = 40;
  config.log_every_frames = 15;
  config.checkpoint_every_frames = 30;
  config.replay.minimum_transitions = 4;
  config.agent.learn_period_frames = 4;
  config.agent.target_period_frames = 0;
  config.agent.target_period_updates = 0;
  return config;
}

// "e" evaluate, "l" log, "s" save.
std::string Due(const Calendar& calendar, std::int64_t frames) {
  const Calendar::Due due = calendar.DueAt(frames);
  return std::string(due.evaluate ? "e" : "") + (due.log ? "l" : "") + (due.save ? "s" : "");
}

// "u" an update, "c" a copy of the target network.
std::string Commands(Calendar& calendar) {
  std::string text;
  for (const Calendar::Command command : calendar.commands()) {
    text += command == Calendar::Command::kLearn ? "u" : "c";
  }
  calendar.ClearCommands();
  return text;
}

// The commands after each of `steps` steps of `frames` frames.
std::string CommandsOf(Calendar& calendar, int steps, int frames) {
  std::string text;
  for (int step = 0; step < steps; ++step) {
    calendar.AddStep(step * frames, (step + 1) * frames, step + 1);
    text += Commands(calendar) + ".";
  }
  return text;
}

TEST(CalendarTest, AnythingIsDueWhenItsPeriodIsCrossedAndAtTheEnd) {
  const RunConfig config = Periods();
  Calendar calendar(config);
  EXPECT_EQ(Due(calendar, 0), "el") << "before the first frame";
  calendar.FinishFrames(0);
  EXPECT_EQ(Due(calendar, 0), "");
  EXPECT_EQ(Due(calendar, 14), "");
  EXPECT_EQ(Due(calendar, 15), "l");
  EXPECT_EQ(Due(calendar, 29), "l");
  EXPECT_EQ(Due(calendar, 30), "ls");
  EXPECT_EQ(Due(calendar, 41), "els") << "an evaluation has its row";
  calendar.FinishFrames(31);
  EXPECT_EQ(Due(calendar, 39), "");
  EXPECT_EQ(Due(calendar, 41), "el");
  calendar.FinishFrames(96);
  EXPECT_EQ(Due(calendar, 99), "");
  EXPECT_EQ(Due(calendar, 100), "els") << "the end";
}

TEST(CalendarTest, UpdatesBeginWhenEnoughIsStored) {
  RunConfig config = Periods();
  Calendar calendar(config);
  // Steps of 2 frames: frames 8, 12, 16 cross the period of 4 with at least 4 transitions.
  EXPECT_EQ(CommandsOf(calendar, 8, 2), "...u..u..u.");
}

TEST(CalendarTest, TheTargetIsCopiedByFramesOrByUpdates) {
  RunConfig config = Periods();
  config.agent.target_period_frames = 10;
  Calendar by_frames(config);
  // Frames 10 and 20 are crossed by steps 5 and 10. An update comes before a copy.
  EXPECT_EQ(CommandsOf(by_frames, 10, 2), "...u.c.u..u..uc.");
  config.agent.target_period_frames = 0;
  config.agent.target_period_updates = 3;
  Calendar by_updates(config);
  EXPECT_EQ(CommandsOf(by_updates, 16, 2), "...u..u..uc..u..u..uc..u.");
  by_updates.Restore(64, 2);  // two updates were made: the next one is the third
  by_updates.AddStep(64, 68, 30);
  EXPECT_EQ(Commands(by_updates), "uc");
}

}  // namespace
}  // namespace uper
