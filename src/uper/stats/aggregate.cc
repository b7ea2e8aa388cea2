#include "uper/stats/aggregate.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "uper/base/check.h"

namespace uper {
namespace {

std::vector<double> TaskMeans(const TaskScores& scores) {
  std::vector<double> means;
  for (const std::vector<double>& runs : scores) means.push_back(Mean(runs));
  return means;
}

std::vector<double> Pooled(const TaskScores& scores) {
  std::vector<double> all;
  for (const std::vector<double>& runs : scores) all.insert(all.end(), runs.begin(), runs.end());
  return all;
}

}  // namespace

double Mean(const std::vector<double>& values) {
  UPER_CHECK(!values.empty(), "a mean needs at least one value");
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double Median(std::vector<double> values) {
  UPER_CHECK(!values.empty(), "a median needs at least one value");
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

double StandardDeviation(const std::vector<double>& values) {
  const double mean = Mean(values);
  double sum = 0;
  for (const double value : values) sum += (value - mean) * (value - mean);
  return std::sqrt(sum / static_cast<double>(values.size()));
}

double MedianOfTaskMeans(const TaskScores& scores) { return Median(TaskMeans(scores)); }

double MeanOfTaskMeans(const TaskScores& scores) { return Mean(TaskMeans(scores)); }

double InterquartileMean(const TaskScores& scores) {
  std::vector<double> all = Pooled(scores);
  std::sort(all.begin(), all.end());
  const auto dropped = static_cast<std::ptrdiff_t>(all.size() / 4);
  return Mean({all.begin() + dropped, all.end() - dropped});
}

double OptimalityGap(const TaskScores& scores, double gamma) {
  std::vector<double> all = Pooled(scores);
  for (double& score : all) score = std::min(score, gamma);
  return gamma - Mean(all);
}

std::vector<double> MediansOverTasks(const TaskScores& scores) {
  UPER_CHECK(!scores.empty(), "a median over tasks needs at least one task");
  std::vector<double> medians;
  for (std::size_t run = 0; run < scores.front().size(); ++run) {
    std::vector<double> of_run;
    for (const std::vector<double>& runs : scores) {
      UPER_CHECK(runs.size() == scores.front().size(), "tasks with different numbers of runs");
      of_run.push_back(runs[run]);
    }
    medians.push_back(Median(std::move(of_run)));
  }
  return medians;
}

}  // namespace uper
