#include "uper/stats/reference_scores.h"

#include <gtest/gtest.h>

#include <cmath>

#include "uper/base/error_for_tests.h"
#include "uper/stats/atari_subset.h"
#include "uper/stats/csv_reader.h"

namespace uper {
namespace {

ErrorKind KindOf(std::string_view text) {
  return Catch([&] { ParseReferenceScores(text, "file.csv", "atari"); }).kind;
}

// The message of the usage error if only two games exist.
std::string RefusalOf(std::string_view text) {
  const std::vector<std::string> known{"minatar/breakout", "minatar/freeway"};
  return uper::Refusal([&] { ParseReferenceScores(text, "file.csv", "minatar", known); });
}

TEST(ReferenceScoresTest, RandomIsZeroAndTheHumanOne) {
  const ReferenceScore pong = BuiltInReferenceScores().at("atari/pong");
  EXPECT_EQ(NormalizedScore(-20.7, pong), 0);
  EXPECT_EQ(NormalizedScore(14.6, pong), 1);
  EXPECT_DOUBLE_EQ(NormalizedScore(20.9, pong), 41.6 / 35.3);
}

TEST(ReferenceScoresTest, AllGamesAreBuiltIn) {
  int atari = 0;
  int minatar = 0;
  for (const auto& [env, score] : BuiltInReferenceScores()) {
    atari += env.starts_with("atari/");
    minatar += env.starts_with("minatar/");
    EXPECT_GT(score.reference, score.random) << env;
  }
  EXPECT_EQ(atari, 57);
  EXPECT_EQ(minatar, 5);
}

TEST(ReferenceScoresTest, ReadsTheUsersFile) {
  const auto by_game = ParseReferenceScores("game,random,human\npong,-20,10\n", "f", "atari");
  EXPECT_EQ(by_game.at("atari/pong").reference, 10);
  const auto by_env = ParseReferenceScores("env,random,reference\r\ngrid/noisy,0,90\r\n", "f", "x");
  EXPECT_EQ(by_env.at("grid/noisy").reference, 90);
}

TEST(ReferenceScoresTest, BadFiles) {
  EXPECT_EQ(KindOf("game,random\npong,1\n"), ErrorKind::kCorrupt);
  EXPECT_EQ(KindOf("game,random,human\npong,1\n"), ErrorKind::kCorrupt);
  EXPECT_EQ(KindOf("game,random,human\npong,1,1\n"), ErrorKind::kUsage);
  EXPECT_EQ(KindOf("game,random,human\npong,1,\n"), ErrorKind::kUsage);
  EXPECT_EQ(KindOf(""), ErrorKind::kCorrupt);
}

TEST(ReferenceScoresTest, WhatIsNoScoreIsTheUsersMistake) {
  for (const char* value : {"one", "nan", "inf", "-inf", "1e999"}) {
    const std::string message = RefusalOf(
        "env,random,human\nminatar/freeway,1,2\nminatar/breakout,1," + std::string(value));
    EXPECT_NE(message.find("file.csv:3: '" + std::string(value) + "'"), std::string::npos)
        << message;
  }
}

TEST(ReferenceScoresTest, EveryRowIsOfAnEnvironmentThatThereIsAndOfAnother) {
  EXPECT_EQ(RefusalOf("game,random,human\nbreakout,1,2\nfreeway,1,2\n"), "accepted");
  EXPECT_EQ(RefusalOf("game,random,human\nfreeway,1,2\nbrekout,1,2\n"),
            "file.csv:3: there is no environment 'minatar/brekout' (did you mean "
            "'minatar/breakout'?)");
  EXPECT_EQ(RefusalOf("env,random,human\nminatar/freeway,1,2\nminatar/freeway,1,3\n"),
            "file.csv:3: minatar/freeway is there already, further up");
}

TEST(CsvTableTest, ALogThatIsBeingWrittenMayEndInMidLine) {
  const CsvTable table("a,b\n1,2\n3", "f", true);
  EXPECT_EQ(table.rows(), 1u);
  EXPECT_THROW(CsvTable("a,b\n1,2\n3", "f"), Error);
  EXPECT_EQ(CsvTable("a,b\n1,2\n3,4", "f").rows(), 2u);
}

TEST(AtariSubsetTest, EstimateByHand) {
  const AtariSubset two = {"two", {{"a", 0.5}, {"b", 0.25}}};
  const auto percent = [](std::string_view game) -> std::optional<double> {
    return game == "a" ? 99 : -50;  // log10(100) = 2, and 0 for what is below random
  };
  EXPECT_NEAR(EstimatedMedian(two, percent).value(), 9, 1e-12);
  EXPECT_FALSE(EstimatedMedian(two, [](std::string_view game) -> std::optional<double> {
                 if (game == "a") return 99;
                 return std::nullopt;
               }).has_value());
}

TEST(AtariSubsetTest, KnownCoefficients) {
  // All games at 100 %: 10^(sum c * log10(101)) - 1.
  const auto hundred = [](std::string_view) { return std::optional<double>(100); };
  const double sums[] = {0.96531, 0.98097};
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_NEAR(EstimatedMedian(AtariSubsets()[i], hundred).value(), std::pow(101, sums[i]) - 1,
                1e-9);
  }
}

}  // namespace
}  // namespace uper
