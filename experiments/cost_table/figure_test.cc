#include "experiments/cost_table/figure.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <sstream>

#include "experiments/cost_table/model.h"
#include "experiments/framework/figure_runner_for_tests.h"
#include "uper/base/error.h"
#include "uper/base/files/read_text.h"
#include "uper/base/files/temporary_folder.h"

namespace uper::experiments::cost_table {
namespace {

const std::map<std::string, std::string> kSmall = {{"environment", "minatar/breakout"},
                                                   {"iterations", "6"}};

// Times that depend on the agent alone: DQN 2 s (1.5 s of it in the game), QR-DQN 3 s, ensemble 8
// s; half of that on the GPU. The first half of the iterations takes ten times as long and must not
// count.
std::vector<IterationTime> FakeTimes(const TimedTraining& training) {
  const std::map<std::string, double> seconds = {{"dqn", 2}, {"qr-dqn", 3}, {"qr-ens-uper", 8}};
  const double one = seconds.at(training.agent) / (training.device == "cuda" ? 2 : 1);
  std::vector<IterationTime> times;
  for (int i = 0; i < training.iterations; ++i) {
    const double factor = i < training.iterations / 2 ? 10 : 1;
    times.push_back({.seconds = factor * one, .environment_seconds = 1.5});
  }
  return times;
}

// The figure's table and the runs behind it, measured with FakeTimes().
struct FakeTable {
  explicit FakeTable(const std::vector<std::string>& devices) {
    const Settings settings(MakeFigure().settings, kSmall);
    cells = EmptyTable(settings.List("readings"), devices);
    for (Cell& cell : cells) {
      runs.push_back(TrainingFor(cell, settings, 1));
      cell.Count(FakeTimes(runs.back()));
    }
    const TemporaryFolder folder;
    WriteTable(folder.path() / "data.csv", cells);
    csv = ReadText(folder.path() / "data.csv").value();
    claims = CostClaims(cells);
  }

  std::vector<Cell> cells;
  std::vector<TimedTraining> runs;
  std::string csv;
  std::vector<Claim> claims;
};

std::string ValueOf(const TimedTraining& training, const std::string& key) {
  for (const auto& [name, value] : training.settings) {
    if (name == key) return value;
  }
  return "";
}

// Row of data.csv that starts like this, cut at the commas.
std::vector<std::string> RowOf(const std::string& csv, const std::string& start) {
  std::istringstream lines(csv);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(start)) continue;
    std::istringstream fields(line);
    std::vector<std::string> row;
    for (std::string field; std::getline(fields, field, ',');) row.push_back(field);
    return row;
  }
  return {};
}

TEST(CostTable, OnlyTheSecondHalfCountsAndRatiosAreToDqn) {
  const FakeTable fake({"cpu"});
  const std::string& data = fake.csv;
  const std::vector<Claim>& claims = fake.claims;
  const auto row = RowOf(data, "literal,cpu,QR-DQN-ENS");
  ASSERT_EQ(row.size(), 12u);
  EXPECT_EQ(row[4], "3");                                // iterations
  EXPECT_EQ(row[5], "8");                                // seconds
  EXPECT_EQ(row[6], "0");                                // their spread
  EXPECT_EQ(row[7], "4");                                // 8 / 2
  EXPECT_EQ(row[8], "28.4");                             // the paper's
  EXPECT_NEAR(std::stod(row[10]), 28.4 / 18.34, 1e-12);  // its ratio
  EXPECT_NEAR(std::stod(row[11]), 28.4 / 8, 1e-12);
  // The third reading has no DQN of its own.
  EXPECT_EQ(RowOf(data, "script-twice,cpu,QR-DQN-ENS").at(7), "4");
  EXPECT_TRUE(RowOf(data, "script-twice,cpu,DQN").empty());
  EXPECT_NEAR(FindClaim(claims, "T1a").interval.value, 1.5 / 2 - 0.5, 1e-12);
  EXPECT_EQ(FindClaim(claims, "T1a").verdict, Verdict::kHolds);
  EXPECT_NEAR(FindClaim(claims, "T1b").interval.value, std::log(1.5), 1e-12);
  EXPECT_EQ(FindClaim(claims, "T1b").verdict, Verdict::kFails);
  EXPECT_THROW(FindClaim(claims, "T1d"),
               std::out_of_range);  // there is no GPU to make a claim about
}

TEST(CostTable, TheReadingsDifferAsFactsA29Says) {
  const FakeTable fake({"cpu"});
  ASSERT_EQ(fake.runs.size(), 7u);  // three, three, one
  const TimedTraining& literal = fake.runs[2];
  EXPECT_EQ(literal.agent, "qr-ens-uper");
  EXPECT_EQ(ValueOf(literal, "replay.batch_size"), "64");
  EXPECT_EQ(ValueOf(literal, "agent.learn_period_frames"), "1000");
  EXPECT_EQ(ValueOf(literal, "evaluate_every_frames"), "0");
  EXPECT_EQ(ValueOf(literal, "network.members"), "");  // the agent's own ten
  const TimedTraining& script = fake.runs[5];
  EXPECT_EQ(ValueOf(script, "agent.learn_period_frames"), "16");
  EXPECT_EQ(ValueOf(script, "evaluation_frames"), "5000");
  EXPECT_EQ(ValueOf(script, "agent.target_period_frames"), "40");
  EXPECT_EQ(ValueOf(script, "network.members"), "8");
  EXPECT_EQ(ValueOf(fake.runs[3], "network.members"), "");  // DQN has none
  EXPECT_EQ(ValueOf(fake.runs[6], "agent.learn_period_frames"), "8");
}

TEST(CostTable, AGpuGetsRowsAndAClaim) {
  const FakeTable fake({"cpu", "cuda"});
  const std::vector<Claim>& claims = fake.claims;
  const auto row = RowOf(fake.csv, "script,cuda,QR-DQN-ENS");
  EXPECT_EQ(row.at(5), "4");
  EXPECT_EQ(row.at(8), "20.74");
  EXPECT_NEAR(FindClaim(claims, "T1d").interval.value, std::log(2), 1e-12);
}

TEST(CostTable, TheFigureTrainsAndWritesATimePerIteration) {
  FigureTestRunner runner("cost-table");
  const Figure figure = MakeFigure();
  runner.Run(figure, 1, 1,
             {{"environment", "minatar/breakout"},
              {"iterations", "2"},
              {"iteration_frames", "20"},
              {"readings", "literal"}});
  const std::string times = runner.Files().at("iterations.csv");
  const auto devices = static_cast<long>(UsableDevices().size());
  EXPECT_EQ(std::count(times.begin(), times.end(), '\n'), 1 + devices * 3 * 2);
  EXPECT_EQ(RowOf(runner.Files().at("data.csv"), "literal,cpu,DQN").at(4), "1");
  EXPECT_EQ(runner.open_tasks(), 0);
}

TEST(CostTable, SaysWhatIsMissingWithoutAtari) {
  const Figure figure = MakeFigure();
  EXPECT_EQ(figure.missing(Settings(figure.settings, kSmall)), "");
  EXPECT_THROW(Settings(figure.settings, {{"environment", "minatar/brekout"}}), Error);
}

}  // namespace
}  // namespace uper::experiments::cost_table
