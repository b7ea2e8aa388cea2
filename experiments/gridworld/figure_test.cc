#include "experiments/gridworld/figure.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "experiments/gridworld/claims.h"
#include "experiments/gridworld/model.h"
#include "uper/base/error_for_tests.h"
#include "uper/base/files/read_text.h"
#include "uper/base/files/temporary_folder.h"

namespace uper::experiments::gridworld {
namespace {

using Assignments = std::map<std::string, std::string>;

class SilentProgress : public ProgressSink {
 public:
  void AddTasks(std::size_t) override {}
  void TaskDone() override {}
  void Warn(const std::string&) override {}
};

std::string ReadAll(const std::filesystem::path& file) {
  const std::optional<std::string> text = ReadText(file);
  EXPECT_TRUE(text.has_value()) << file;
  return text.value_or("");
}

std::size_t LineCount(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

struct Outcome {
  std::vector<Claim> claims;
  std::string returns;
  std::string heatmap;
  std::string map;
};

Outcome RunFigure(const Assignments& assigned, int seeds, int jobs) {
  const TemporaryFolder folder;
  const Figure figure = MakeFigure();
  const Settings settings(figure.settings, assigned);
  SilentProgress progress;
  const StopFlag stop{false};
  Outcome outcome;
  outcome.claims = figure.run({.folder = folder.path(),
                               .seeds = seeds,
                               .jobs = jobs,
                               .settings = settings,
                               .progress = progress,
                               .stop = stop});
  outcome.returns = ReadAll(folder.path() / "returns.csv");
  outcome.heatmap = ReadAll(folder.path() / "heatmap.csv");
  outcome.map = ReadAll(folder.path() / "map.csv");
  return outcome;
}

std::vector<double> Returns(const GridworldTrace& trace) {
  std::vector<double> returns;
  returns.reserve(trace.tests.size());
  for (const TestEpisode& test : trace.tests) returns.push_back(test.undiscounted_return);
  return returns;
}

TEST(GridworldSimulationTest, TimeOutBootstrapsAndGoalDoesNot) {
  const GridStep timed_out{.state = 7, .reward = 1.5, .truncated = true};
  const QTransition transition = LearnerTransition(6, 3, timed_out, 0.9);
  EXPECT_EQ(transition.s_tm1, 6);
  EXPECT_EQ(transition.a_tm1, 3);
  EXPECT_EQ(transition.s_t, 7);
  EXPECT_EQ(transition.r_t, 1.5);
  EXPECT_EQ(transition.discount_t, 0.9);
  const GridStep goal{.state = 7, .reward = 100, .terminated = true};
  EXPECT_EQ(LearnerTransition(6, 3, goal, 0.9).discount_t, 0);
}

TEST(GridworldSimulationTest, DependsOnItsArgumentsAlone) {
  const GridworldOptions options{.episodes = 20};
  for (const GridworldMethod method : kGridworldMethods) {
    const GridworldTrace first = SimulateGridworld(options, method, 3);
    const GridworldTrace again = SimulateGridworld(options, method, 3);
    EXPECT_EQ(Returns(first), Returns(again));
    EXPECT_EQ(first.draws_by_state, again.draws_by_state);
    EXPECT_NE(Returns(first), Returns(SimulateGridworld(options, method, 4)));
  }
}

// Only the replay differs between methods: without replay updates they are the same.
TEST(GridworldSimulationTest, MethodsOfASeedShareTheirStreams) {
  GridworldOptions options{.episodes = 20};
  options.agent.replay_updates = 0;
  const GridworldTrace none = SimulateGridworld(options, GridworldMethod::kNone, 1);
  for (const GridworldMethod method : kGridworldMethods) {
    EXPECT_EQ(Returns(SimulateGridworld(options, method, 1)), Returns(none));
  }
}

TEST(GridworldSimulationTest, DrawsFollowTheCadence) {
  // One step per episode: 40 steps, hence 4 replays of 5 draws, all from the start.
  GridworldOptions options{.map = GridMap::Parse("S.G\n", "corridor"), .episodes = 40};
  options.environment.timeout_steps = 1;
  const GridworldTrace trace = SimulateGridworld(options, GridworldMethod::kEr, 1);
  EXPECT_EQ(trace.draws_by_state, (std::vector<std::int64_t>{20, 0, 0}));
  EXPECT_EQ(SimulateGridworld(options, GridworldMethod::kNone, 1).draws_by_state,
            (std::vector<std::int64_t>{0, 0, 0}));
}

TEST(GridworldSimulationTest, TestEpisodesAreGreedyAndBounded) {
  // A noiseless corridor is learned at once; the test then takes the shortest way every time.
  GridworldOptions options{.map = GridMap::Parse("S..G\n", "corridor"), .episodes = 30};
  const GridworldTrace trace = SimulateGridworld(options, GridworldMethod::kNone, 1);
  EXPECT_EQ(trace.tests.back().steps, 3);
  EXPECT_EQ(trace.tests.back().undiscounted_return, 100);
  EXPECT_TRUE(trace.tests.back().reached_goal);

  options.environment.timeout_steps = 2;  // the goal cannot be reached
  const GridworldTrace cut = SimulateGridworld(options, GridworldMethod::kNone, 1);
  EXPECT_EQ(cut.tests.back().steps, 2);
  EXPECT_EQ(cut.tests.back().undiscounted_return, 0);
  EXPECT_FALSE(cut.tests.back().reached_goal);
}

TEST(GridworldSimulationTest, CountsDrawsThatEndInNoise) {
  // One step per episode, always from the quiet start: only the moves to the right end in noise.
  GridworldOptions options{.map = GridMap::Parse("S~G\n", "noise"), .episodes = 200};
  options.environment.timeout_steps = 1;
  const GridworldTrace trace = SimulateGridworld(options, GridworldMethod::kEr, 1);
  EXPECT_EQ(trace.draws_by_state, (std::vector<std::int64_t>{100, 0, 0}));
  EXPECT_GT(trace.draws_into_noise, 0);
  EXPECT_LT(trace.draws_into_noise, 100);
}

TEST(GridworldSimulationTest, ReturnIsTheSumOfAllRewards) {
  // The only way to the goal leads through one noisy cell, so the return is 100 + N(0, 0.01^2).
  GridworldOptions options{.map = GridMap::Parse("S~G\n", "noise"), .episodes = 50};
  options.environment.noise_sd = 0.01;
  const TestEpisode last = SimulateGridworld(options, GridworldMethod::kNone, 1).tests.back();
  EXPECT_EQ(last.steps, 2);
  EXPECT_NE(last.undiscounted_return, 100);
  EXPECT_NEAR(last.undiscounted_return, 100, 0.05);
}

// "S.~G": distances 0, 1, 2, 3. Cells nearer than 1.5 are early.
TEST(GridworldClaimsTest, SummaryByHand) {
  const GridMap map = GridMap::Parse("S.~G\n", "corridor");
  GridworldTrace trace{.draws_by_state = {1, 3, 4, 0}, .draws_into_noise = 2};
  for (int episode = 0; episode < 40; ++episode) {  // the last 15 reach the goal
    const bool reached = episode >= 25;
    trace.tests.push_back({.undiscounted_return = reached ? 8.0 : 0.0, .reached_goal = reached});
  }
  const GridworldSummary summary = Summarize(map, trace);
  EXPECT_DOUBLE_EQ(summary.mean_return, 3);
  EXPECT_DOUBLE_EQ(summary.late_goal_share, 0.5);
  EXPECT_DOUBLE_EQ(summary.early_draw_share, 0.5);
  EXPECT_DOUBLE_EQ(summary.late_draw_share, 0.5);
  EXPECT_DOUBLE_EQ(summary.noisy_draw_share, 0.25);
}

TEST(GridworldClaimsTest, HalfTheDistanceIsLate) {
  const GridMap map = GridMap::Parse("S.G\n", "corridor");  // the middle is exactly half-way
  const GridworldSummary summary =
      Summarize(map, {.tests = {{}}, .draws_by_state = {1, 3, 0}, .draws_into_noise = 0});
  EXPECT_DOUBLE_EQ(summary.early_draw_share, 0.25);
  EXPECT_DOUBLE_EQ(summary.late_draw_share, 0.75);
}

TEST(GridworldClaimsTest, RunsWithoutDrawsHaveShareZero) {
  const GridMap map = GridMap::Parse("SG\n", "corridor");
  const GridworldSummary summary =
      Summarize(map, {.tests = {{}}, .draws_by_state = {0, 0}, .draws_into_noise = 0});
  EXPECT_EQ(summary.early_draw_share, 0);
  EXPECT_EQ(summary.late_draw_share, 0);
  EXPECT_EQ(summary.noisy_draw_share, 0);
}

// Two equal seeds, so that every value is exact. "S.~G" has 3 cells to leave, 2 of them early.
TEST(GridworldClaimsTest, ValuesHaveTheClaimedSign) {
  const GridMap map = GridMap::Parse("S.~G\n", "corridor");
  const GridworldSummary none{.mean_return = 10, .late_goal_share = 1};
  const GridworldSummary er{
      .mean_return = 20, .early_draw_share = 0.9, .late_draw_share = 0.1, .noisy_draw_share = 0.2};
  const GridworldSummary per{
      .mean_return = 40, .early_draw_share = 0.7, .late_draw_share = 0.3, .noisy_draw_share = 0.6};
  const GridworldSummary uper{.mean_return = 35, .early_draw_share = 0.5, .late_draw_share = 0.5};
  const GridworldSummaries summaries = {std::vector(2, none), std::vector(2, er),
                                        std::vector(2, per), std::vector(2, uper)};
  const Assignments verdicts = {{"20", "holds"}, {"21", "holds"},  {"22", "holds"},
                                {"23", "fails"}, {"24a", "holds"}, {"24b", "holds"},
                                {"25", "holds"}, {"26a", "holds"}, {"26b", "holds"}};
  const std::map<std::string, double> values = {{"20", 0.1}, {"21", 10},   {"22", 20},
                                                {"23", -5},  {"24a", 0.4}, {"24b", 0.9 - 2.0 / 3},
                                                {"25", 0.4}, {"26a", 0.4}, {"26b", 0.2}};
  const std::vector<Claim> claims = GridworldClaims(map, summaries);
  EXPECT_EQ(claims.size(), values.size());
  for (const Claim& claim : claims) {
    ASSERT_TRUE(values.contains(claim.id)) << claim.id;
    EXPECT_NEAR(claim.interval.value, values.at(claim.id), 1e-12) << claim.id;
    EXPECT_EQ(VerdictName(claim.verdict), verdicts.at(claim.id)) << claim.id;
    EXPECT_FALSE(claim.statement.empty() || claim.where_in_paper.empty());
    EXPECT_NE(claim.statistic.find("positive supports"), std::string::npos) << claim.id;
  }
}

TEST(GridworldFigureTest, WritesTheDocumentedFiles) {
  const Outcome outcome = RunFigure({{"episodes", "3"}}, 2, 1);
  EXPECT_TRUE(
      outcome.returns.starts_with("method,seed,episode,return,steps,reached_goal\n"
                                  "none,1,1,"));
  EXPECT_EQ(LineCount(outcome.returns), 1u + 4 * 2 * 3);
  EXPECT_TRUE(outcome.heatmap.starts_with("method,row,column,draws\nnone,0,0,0\n"));
  EXPECT_EQ(LineCount(outcome.heatmap), 1u + 4 * 8 * 8);
  EXPECT_TRUE(outcome.map.starts_with("row,column,kind\n0,0,wall\n"));
  EXPECT_NE(outcome.map.find("\n1,1,start\n1,2,noisy\n"), std::string::npos);
  EXPECT_NE(outcome.map.find("\n6,6,goal\n"), std::string::npos);
  EXPECT_EQ(outcome.claims.size(), 9u);
}

TEST(GridworldFigureTest, HeatmapSumsOverSeeds) {
  const GridworldOptions options{.agent = {.new_items = NewItemPriority::kCurrent}, .episodes = 3};
  std::int64_t draws = 0;
  for (const std::uint64_t seed : {1, 2}) {
    const GridworldTrace trace = SimulateGridworld(options, GridworldMethod::kPer, seed);
    draws += trace.draws_by_state[static_cast<std::size_t>(options.map.start())];
  }
  EXPECT_GT(draws, 0);
  const std::string row = "\nper,1,1," + std::to_string(draws) + "\n";
  EXPECT_NE(RunFigure({{"episodes", "3"}}, 2, 1).heatmap.find(row), std::string::npos) << row;
}

TEST(GridworldFigureTest, ResultsAreTheSameForAnyNumberOfJobs) {
  const Outcome one = RunFigure({{"episodes", "10"}}, 5, 1);
  const Outcome three = RunFigure({{"episodes", "10"}}, 5, 3);
  EXPECT_EQ(one.returns, three.returns);
  EXPECT_EQ(one.heatmap, three.heatmap);
  ASSERT_EQ(one.claims.size(), three.claims.size());
  for (std::size_t claim = 0; claim < one.claims.size(); ++claim) {
    EXPECT_EQ(one.claims[claim].interval.value, three.claims[claim].interval.value);
    EXPECT_EQ(one.claims[claim].interval.low, three.claims[claim].interval.low);
  }
}

TEST(GridworldFigureTest, MoreSeedsKeepTheFormerOnes) {
  const std::string few = RunFigure({{"episodes", "5"}}, 1, 1).returns;
  const std::string more = RunFigure({{"episodes", "5"}}, 2, 1).returns;
  EXPECT_EQ(few.substr(0, few.find("none,1,5")), more.substr(0, more.find("none,1,5")));
}

// Every declared setting changes the result, so none is lost on its way to the simulation.
TEST(GridworldFigureTest, EverySettingIsRead) {
  const TemporaryFolder folder;
  const std::string map_file = (folder.path() / "other.map").string();
  std::ofstream(map_file) << "S~.\n...\n..G\n";
  const Assignments other = {{"map", map_file},
                             {"noise_sd", "1.5"},
                             {"goal_reward", "50"},
                             {"timeout_steps", "500"},
                             {"episodes", "21"},
                             {"epsilon", "0.5"},
                             {"gamma", "0.8"},
                             {"learning_rate", "0.2"},
                             {"variance_learning_rate", "0.2"},
                             {"replay_capacity", "500"},
                             {"steps_between_replays", "5"},
                             {"replay_updates", "6"},
                             {"priority_exponent", "0.9"},
                             {"uniform_mix", "0.2"},
                             {"new_items", "largest"},
                             {"visit_count", "state"},
                             {"aleatoric_floor", "0.1"}};
  const Outcome standard = RunFigure({{"episodes", "20"}}, 1, 1);
  for (const SettingInfo& info : MakeFigure().settings) {
    ASSERT_TRUE(other.contains(info.key)) << info.key;
    Assignments assigned = {{"episodes", "20"}};
    assigned[info.key] = other.at(info.key);
    const Outcome changed = RunFigure(assigned, 1, 1);
    EXPECT_NE(changed.returns + changed.heatmap, standard.returns + standard.heatmap) << info.key;
  }
}

TEST(GridworldFigureTest, BadMapIsAUsageErrorThatSaysWhy) {
  const TemporaryFolder folder;
  const std::string map_file = (folder.path() / "bad.map").string();
  std::ofstream(map_file) << "S.#G\n";
  const std::string message = Refusal([&] { RunFigure({{"map", map_file}}, 1, 1); });
  EXPECT_NE(message.find("no path from the start"), std::string::npos) << message;
}

TEST(GridworldFigureTest, IsDeclaredAsTheDesignSays) {
  const Figure figure = MakeFigure();
  EXPECT_EQ(figure.id, "gridworld");
  EXPECT_EQ(figure.default_seeds, 300);
}

}  // namespace
}  // namespace uper::experiments::gridworld
