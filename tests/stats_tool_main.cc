// Test tool of tests/test_stats_oracle.py, not a program for users.
//
//   stats_tool < INPUT > OUTPUT
//     INPUT: JSON with x and y (normalized scores, [task][run]), taus, and the resamples to use,
//     x_resamples and y_resamples ([replication][task][draw]).
//     OUTPUT: JSON; name -> value, or name -> {value, low, high}.

#include <iostream>
#include <nlohmann/json.hpp>

#include "uper/stats/aggregate.h"
#include "uper/stats/comparison.h"
#include "uper/stats/stratified_bootstrap.h"

namespace {

using uper::TaskScores;
using Json = nlohmann::json;

Json AsJson(const uper::Interval& interval) {
  return {{"value", interval.value}, {"low", interval.low}, {"high", interval.high}};
}

Json Intervals(const TaskScores& scores, const std::vector<uper::RunIndices>& resamples) {
  const std::pair<const char*, uper::ScoreStatistic> statistics[] = {
      {"median", uper::MedianOfTaskMeans},
      {"mean", uper::MeanOfTaskMeans},
      {"iqm", uper::InterquartileMean},
      {"gap", [](const TaskScores& s) { return uper::OptimalityGap(s); }}};
  Json json;
  for (const auto& [name, statistic] : statistics) {
    json[name] = AsJson(uper::StratifiedInterval(scores, resamples, statistic));
  }
  return json;
}

Json ProfileIntervals(const TaskScores& scores, const std::vector<double>& taus,
                      const std::vector<uper::RunIndices>& resamples) {
  Json json = Json::array();
  for (const double tau : taus) {
    const auto at_tau = [&](const TaskScores& s) {
      return uper::PerformanceProfile(s, std::span(&tau, 1)).front();
    };
    json.push_back(AsJson(uper::StratifiedInterval(scores, resamples, at_tau)));
  }
  return json;
}

}  // namespace

int main() {
  const Json input = Json::parse(std::cin);
  const auto x = input.at("x").get<TaskScores>();
  const auto y = input.at("y").get<TaskScores>();
  const auto x_resamples = input.at("x_resamples").get<std::vector<uper::RunIndices>>();
  const auto y_resamples = input.at("y_resamples").get<std::vector<uper::RunIndices>>();
  Json output = Intervals(x, x_resamples);
  output["profile"] = ProfileIntervals(x, input.at("taus").get<std::vector<double>>(), x_resamples);
  output["improvement"] = AsJson(
      uper::StratifiedInterval(x, y, x_resamples, y_resamples, uper::ProbabilityOfImprovement));
  std::cout << output.dump() << "\n";
}
