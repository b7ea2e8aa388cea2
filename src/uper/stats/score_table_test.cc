#include "uper/stats/score_table.h"

#include <gtest/gtest.h>

#include "uper/base/error.h"
#include "uper/stats/smoothing.h"

namespace uper {
namespace {

const ReferenceScores kReferences = {{"toy/a", {.random = 0, .reference = 10}},
                                     {"toy/b", {.random = 10, .reference = 0}},
                                     {"other/a", {.random = 0, .reference = 1}}};

RunCurve CurveOf(std::string agent, std::string env, std::int64_t seed, std::vector<double> returns,
                 std::int64_t every = 100) {
  RunCurve run{.folder = agent + env, .agent = agent, .env = env, .seed = seed, .finished = true};
  for (std::size_t i = 0; i < returns.size(); ++i) {
    run.evaluations.push_back({static_cast<std::int64_t>(i) * every, returns[i]});
  }
  return run;
}

TEST(SmoothingTest, TrailingMeanStartsWithWhatThereIs) {
  EXPECT_EQ(TrailingMean(std::vector<double>{2, 4, 6, 8}, 2), (std::vector<double>{2, 3, 5, 7}));
  EXPECT_EQ(TrailingMean(std::vector<double>{2, 4}, 1), (std::vector<double>{2, 4}));
  std::vector<double> eleven(11, 0);
  eleven[0] = 10;
  const std::vector<double> smoothed = TrailingMean(eleven);
  EXPECT_DOUBLE_EQ(smoothed[9], 1);   // ten values, the first among them
  EXPECT_DOUBLE_EQ(smoothed[10], 0);  // it has left the window
}

TEST(ScoreTableTest, SmoothsThenNormalizes) {
  const std::vector<RunCurve> runs = {CurveOf("x", "toy/a", 1, {0, 10, 20}),
                                      CurveOf("x", "toy/b", 1, {10, 0, 0})};
  const ScoreTable table(runs, kReferences, 2);
  EXPECT_EQ(table.Find("x", "a", 1)->normalized, (std::vector<double>{0, 0.5, 1.5}));
  EXPECT_EQ(table.Find("x", "a", 1)->raw, (std::vector<double>{0, 10, 20}));
  EXPECT_EQ(table.Find("x", "b", 1)->normalized, (std::vector<double>{0, 0.5, 1}));
  EXPECT_EQ(table.MedianCurve("x", table.games(), 1), (std::vector<double>{0, 0.5, 1.25}));
}

TEST(ScoreTableTest, OnlyCommonMarksCountButAllEvaluationsSmooth) {
  const std::vector<RunCurve> runs = {CurveOf("x", "toy/a", 1, {0, 10, 20, 30, 40}),
                                      CurveOf("y", "toy/a", 1, {0, 10, 20}, 200)};
  const ScoreTable table(runs, kReferences, 2);
  EXPECT_EQ(table.marks(), (std::vector<std::int64_t>{0, 200, 400}));
  EXPECT_EQ(table.Find("x", "a", 1)->smoothed, (std::vector<double>{0, 15, 35}));
}

TEST(ScoreTableTest, MissingRunsAreNotInvented) {
  const std::vector<RunCurve> runs = {CurveOf("x", "toy/a", 1, {1}), CurveOf("x", "toy/b", 1, {1}),
                                      CurveOf("x", "toy/a", 2, {3}), CurveOf("y", "toy/a", 2, {2})};
  const ScoreTable table(runs, kReferences, 10);
  const std::vector<std::string> both{"x", "y"};
  EXPECT_EQ(table.CommonGames(both), (std::vector<std::string>{"a"}));
  EXPECT_EQ(table.CompleteSeeds("x", table.games()), (std::vector<std::int64_t>{1}));
  EXPECT_EQ(table.ScoresAt("x", table.games(), 0), (TaskScores{{0.1, 0.3}, {0.9}}));
  EXPECT_DOUBLE_EQ(table.MeanCurve("x", "a").front(), 0.2);
  EXPECT_EQ(table.Find("y", "b", 2), nullptr);
  EXPECT_THROW(table.MedianCurve("x", table.games(), 2), Error);
}

TEST(ScoreTableTest, AnAgentWithFewGamesDoesNotShrinkTheComparison) {
  ReferenceScores references;
  std::vector<RunCurve> runs;
  for (const char* env : {"toy/a", "toy/b", "toy/c", "toy/d", "toy/e"}) {
    references[env] = {.random = 0, .reference = 1};
    runs.push_back(CurveOf("full", env, 1, {1}));
    if (env[4] <= 'c') runs.push_back(CurveOf("most", env, 1, {1}));
    if (env[4] <= 'b') runs.push_back(CurveOf("few", env, 1, {1}));
    if (env[4] >= 'c') runs.push_back(CurveOf("last", env, 1, {1}));
  }
  const ScoreTable table(runs, references, 1);
  const std::vector<std::string> all{"full", "few", "most", "last"};
  const ScoreTable::Selection shown = table.Comparable(all);
  EXPECT_EQ(shown.agents, (std::vector<std::string>{"full", "most", "last"}));
  EXPECT_EQ(shown.games, (std::vector<std::string>{"c"}));
  const std::vector<std::string> apart{"few", "last"};
  EXPECT_EQ(table.Comparable(apart).agents, (std::vector<std::string>{"few"}));
}

TEST(ScoreTableTest, RunsThatDoNotBelongTogetherAreRefused) {
  const auto kind_of = [](std::vector<RunCurve> runs) {
    try {
      ScoreTable(runs, kReferences, 10);
    } catch (const Error& error) {
      return error.kind();
    }
    return ErrorKind::kInternal;
  };
  EXPECT_EQ(kind_of({CurveOf("x", "toy/a", 1, {1}), CurveOf("x", "toy/a", 1, {2})}),
            ErrorKind::kUsage);
  EXPECT_EQ(kind_of({CurveOf("x", "toy/a", 1, {1}), CurveOf("x", "other/a", 1, {2})}),
            ErrorKind::kUsage);
  EXPECT_EQ(kind_of({CurveOf("x", "toy/c", 1, {1})}), ErrorKind::kUsage);
  std::vector<RunCurve> apart = {CurveOf("x", "toy/a", 1, {1}), CurveOf("y", "toy/a", 1, {1})};
  apart[1].evaluations[0].frames = 50;
  EXPECT_EQ(kind_of(apart), ErrorKind::kUsage);
}

}  // namespace
}  // namespace uper
