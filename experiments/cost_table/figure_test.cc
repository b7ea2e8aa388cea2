#include "experiments/cost_table/figure.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <sstream>

#include "experiments/bias/figure_test_runner.h"
#include "uper/base/error.h"

namespace uper::experiments {
namespace {

// Times that depend on the agent alone: DQN 2 s (1.5 s of it in the game), QR-DQN 3 s, ensemble 8
// s; on the GPU the half. The first half of the iterations takes ten times as long and must not
// count.
struct FakeBench {
  std::vector<TimedTraining> asked;
  TrainingBench bench;

  explicit FakeBench(std::vector<std::string> devices) {
    bench.devices = std::move(devices);
    bench.time = [this](const TimedTraining& training) {
      asked.push_back(training);
      const std::map<std::string, double> seconds = {{"dqn", 2}, {"qr-dqn", 3}, {"qr-ens-uper", 8}};
      const double one = seconds.at(training.agent) / (training.device == "cuda" ? 2 : 1);
      std::vector<IterationTime> times;
      for (int i = 0; i < training.iterations; ++i) {
        const double factor = i < training.iterations / 2 ? 10 : 1;
        times.push_back({.seconds = factor * one, .environment_seconds = 1.5});
      }
      return times;
    };
  }
};

const std::map<std::string, std::string> kSmall = {{"environment", "minatar/breakout"},
                                                   {"iterations", "6"}};

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
  FakeBench fake({"cpu"});
  FigureTestRunner runner("cost-table");
  runner.training = &fake.bench;
  const std::vector<Claim> claims = runner.Run(CostTableFigure(), 1, 1, kSmall);
  const std::string data = runner.Files().at("data.csv");
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
  EXPECT_THROW(FindClaim(claims, "T1d"), std::out_of_range);  // no GPU: nothing is said about it
}

TEST(CostTable, TheReadingsDifferAsFactsA29Says) {
  FakeBench fake({"cpu"});
  FigureTestRunner runner("cost-table");
  runner.training = &fake.bench;
  runner.Run(CostTableFigure(), 1, 1, kSmall);
  ASSERT_EQ(fake.asked.size(), 7u);  // three, three, one
  const TimedTraining& literal = fake.asked[2];
  EXPECT_EQ(literal.agent, "qr-ens-uper");
  EXPECT_EQ(ValueOf(literal, "replay.batch_size"), "64");
  EXPECT_EQ(ValueOf(literal, "agent.learn_period_frames"), "1000");
  EXPECT_EQ(ValueOf(literal, "evaluate_every_frames"), "0");
  EXPECT_EQ(ValueOf(literal, "network.members"), "");  // the agent's own ten
  const TimedTraining& script = fake.asked[5];
  EXPECT_EQ(ValueOf(script, "agent.learn_period_frames"), "16");
  EXPECT_EQ(ValueOf(script, "evaluation_frames"), "5000");
  EXPECT_EQ(ValueOf(script, "agent.target_period_frames"), "40");
  EXPECT_EQ(ValueOf(script, "network.members"), "8");
  EXPECT_EQ(ValueOf(fake.asked[3], "network.members"), "");  // DQN has none
  EXPECT_EQ(ValueOf(fake.asked[6], "agent.learn_period_frames"), "8");
}

TEST(CostTable, AGpuGetsRowsAndAClaim) {
  FakeBench fake({"cpu", "cuda"});
  FigureTestRunner runner("cost-table");
  runner.training = &fake.bench;
  const std::vector<Claim> claims = runner.Run(CostTableFigure(), 1, 1, kSmall);
  const auto row = RowOf(runner.Files().at("data.csv"), "script,cuda,QR-DQN-ENS");
  EXPECT_EQ(row.at(5), "4");
  EXPECT_EQ(row.at(8), "20.74");
  EXPECT_NEAR(FindClaim(claims, "T1d").interval.value, std::log(2), 1e-12);
}

TEST(CostTable, SaysWhatIsMissingWithoutAtari) {
  const Figure figure = CostTableFigure();
  EXPECT_EQ(figure.missing(Settings(figure.settings, kSmall)), "");
  EXPECT_THROW(Settings(figure.settings, {{"environment", "minatar/brekout"}}), Error);
}

}  // namespace
}  // namespace uper::experiments
