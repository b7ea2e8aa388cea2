#include "apps/uper/emulator_turns.h"

#include <gtest/gtest.h>

#include <thread>

namespace uper {
namespace {

void Sleep(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

TEST(EmulatorTurnsTest, ComparesATurnWithTheEmulatorBesideIt) {
  std::vector<double> speeds = {1000, 3000, 500};
  std::size_t calls = 0;
  EmulatorTurns turns([&] {
    Sleep(0.03);
    return speeds[calls++];
  });
  turns.Begin(100);
  Sleep(0.1);
  turns.Next(300);  // at most 2,000 frames a second, beside 2,000
  Sleep(0.1);
  turns.Next(405);  // at most 1,050 beside 1,750
  EXPECT_EQ(turns.emulator_speeds(), speeds);
  ASSERT_EQ(turns.shares().size(), 2U);
  // A busy machine may sleep longer, but never shorter.
  EXPECT_LE(turns.shares()[0], 1.0);
  EXPECT_GT(turns.shares()[0], 0.0);
  EXPECT_LE(turns.shares()[1], 0.6);
  EXPECT_GT(turns.shares()[1], 0.0);
  EXPECT_GE(turns.waited_seconds(), 0.06) << "the first time was before the training";
}

TEST(EmulatorTurnsTest, WhatIsTooShortDoesNotCount) {
  int calls = 0;
  EmulatorTurns turns([&] {
    ++calls;
    return 1000.0;
  });
  turns.Begin(0);
  turns.Next(1);
  EXPECT_EQ(calls, 1);
  EXPECT_TRUE(turns.shares().empty());
  Sleep(0.06);
  turns.Next(60);
  ASSERT_EQ(turns.shares().size(), 1U);
  EXPECT_LE(turns.shares()[0], 1.0) << "of the whole turn";
}

}  // namespace
}  // namespace uper
