#include "uper/base/did_you_mean.h"

#include <gtest/gtest.h>

#include <vector>

namespace uper {
namespace {

const std::vector<std::string> kNames = {"bandit", "bandit-shifted", "gridworld", "phase"};

TEST(DidYouMeanTest, FindsEveryOneLetterSlip) {
  EXPECT_EQ(NearestName("bandt", kNames), "bandit");    // left out
  EXPECT_EQ(NearestName("banddit", kNames), "bandit");  // doubled
  EXPECT_EQ(NearestName("bendit", kNames), "bandit");   // wrong
  EXPECT_EQ(NearestName("badnit", kNames), "bandit");   // swapped
  EXPECT_EQ(NearestName("gridwrold", kNames), "gridworld");
}

TEST(DidYouMeanTest, PrefersTheNearest) {
  EXPECT_EQ(NearestName("bandit-shiftd", kNames), "bandit-shifted");
}

TEST(DidYouMeanTest, LooksAtTheLastPart) {
  const std::vector<std::string> names = {"atari/hero",
                                          "atari/kung_fu_master",
                                          "atari/pong",
                                          "atari/yars_revenge",
                                          "minatar/breakout",
                                          "replay.mix",
                                          "replay.capacity_transitions"};
  EXPECT_EQ(NearestName("atari/pnog", names), "atari/pong");
  EXPECT_EQ(NearestName("atari/PONG", names), "atari/pong");
  EXPECT_EQ(NearestName("pong", names), "atari/pong");
  EXPECT_EQ(NearestName("ALE/Pong", names), "atari/pong");
  EXPECT_EQ(NearestName("breakout", names), "minatar/breakout");
  EXPECT_EQ(NearestName("miniatar/breakout", names), "minatar/breakout");
  EXPECT_EQ(NearestName("atari/yars", names), "atari/yars_revenge");
  EXPECT_EQ(NearestName("atari/kung_fu", names), "atari/kung_fu_master");
  EXPECT_EQ(NearestName("replay.capacity", names), "replay.capacity_transitions");
  EXPECT_EQ(NearestName("replay.capcity", names), "replay.capacity_transitions");
  EXPECT_EQ(NearestName("replay.capcty", names), "");
  EXPECT_EQ(NearestName("atari/foo", names), "");
}

TEST(DidYouMeanTest, SuggestsNothingForSomethingElse) {
  EXPECT_EQ(NearestName("zzzzzz", kNames), "");
  EXPECT_EQ(NearestName("", kNames), "");
  EXPECT_EQ(DidYouMean("zzzzzz", kNames), "");
}

TEST(DidYouMeanTest, WordsTheSuggestion) {
  EXPECT_EQ(DidYouMean("phsae", kNames), " (did you mean 'phase'?)");
}

}  // namespace
}  // namespace uper
