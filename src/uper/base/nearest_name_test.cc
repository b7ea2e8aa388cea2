#include "uper/base/nearest_name.h"

#include <gtest/gtest.h>

#include <vector>

namespace uper {
namespace {

const std::vector<std::string> kNames = {"bandit", "bandit-shifted", "gridworld", "phase"};

TEST(NearestNameTest, FindsEveryOneLetterSlip) {
  EXPECT_EQ(NearestName("bandt", kNames), "bandit");    // left out
  EXPECT_EQ(NearestName("banddit", kNames), "bandit");  // doubled
  EXPECT_EQ(NearestName("bendit", kNames), "bandit");   // wrong
  EXPECT_EQ(NearestName("badnit", kNames), "bandit");   // swapped
  EXPECT_EQ(NearestName("gridwrold", kNames), "gridworld");
}

TEST(NearestNameTest, PrefersTheNearest) {
  EXPECT_EQ(NearestName("bandit-shiftd", kNames), "bandit-shifted");
}

TEST(NearestNameTest, SuggestsNothingForSomethingElse) {
  EXPECT_EQ(NearestName("zzzzzz", kNames), "");
  EXPECT_EQ(NearestName("", kNames), "");
  EXPECT_EQ(DidYouMean("zzzzzz", kNames), "");
}

TEST(NearestNameTest, WordsTheSuggestion) {
  EXPECT_EQ(DidYouMean("phsae", kNames), " (did you mean 'phase'?)");
}

}  // namespace
}  // namespace uper
