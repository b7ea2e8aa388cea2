#include "uper/stats/stratified_bootstrap.h"

#include <algorithm>
#include <limits>

#include "uper/base/check.h"
#include "uper/base/random.h"

namespace uper {
namespace {

bool ShowsSpread(const TaskScores& scores) {
  return std::any_of(scores.begin(), scores.end(),
                     [](const auto& runs) { return runs.size() > 1; });
}

Interval PercentileInterval(double value, std::vector<double> resampled) {
  std::sort(resampled.begin(), resampled.end());
  return {.value = value,
          .low = SortedQuantile(resampled, 0.025),
          .high = SortedQuantile(resampled, 0.975)};
}

Interval Unbounded(double value) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  return {.value = value, .low = -kInfinity, .high = kInfinity};
}

}  // namespace

std::vector<RunIndices> DrawResamples(const TaskScores& scores, int replications,
                                      std::uint64_t seed) {
  std::vector<RunIndices> resamples(static_cast<std::size_t>(replications));
  RandomStream stream(seed, "stratified bootstrap", scores.size());
  for (RunIndices& indices : resamples) {
    for (const std::vector<double>& runs : scores) {
      std::vector<std::uint32_t>& drawn = indices.emplace_back(runs.size());
      for (std::uint32_t& index : drawn) {
        index = static_cast<std::uint32_t>(stream.UniformInt(runs.size()));
      }
    }
  }
  return resamples;
}

TaskScores Resampled(const TaskScores& scores, const RunIndices& indices) {
  UPER_CHECK(indices.size() == scores.size(), "a resample of other tasks");
  TaskScores resampled(scores.size());
  for (std::size_t task = 0; task < scores.size(); ++task) {
    for (const std::uint32_t index : indices[task]) {
      resampled[task].push_back(scores[task].at(index));
    }
  }
  return resampled;
}

Interval StratifiedInterval(const TaskScores& scores, const std::vector<RunIndices>& resamples,
                            const ScoreStatistic& statistic) {
  const double value = statistic(scores);
  if (!ShowsSpread(scores) || resamples.empty()) return Unbounded(value);
  std::vector<double> values;
  for (const RunIndices& indices : resamples) {
    values.push_back(statistic(Resampled(scores, indices)));
  }
  return PercentileInterval(value, std::move(values));
}

Interval StratifiedInterval(const TaskScores& x, const TaskScores& y,
                            const std::vector<RunIndices>& x_resamples,
                            const std::vector<RunIndices>& y_resamples,
                            const ComparisonStatistic& statistic) {
  UPER_CHECK(x_resamples.size() == y_resamples.size(), "different numbers of resamples");
  const double value = statistic(x, y);
  if ((!ShowsSpread(x) && !ShowsSpread(y)) || x_resamples.empty()) return Unbounded(value);
  std::vector<double> values;
  for (std::size_t i = 0; i < x_resamples.size(); ++i) {
    values.push_back(statistic(Resampled(x, x_resamples[i]), Resampled(y, y_resamples[i])));
  }
  return PercentileInterval(value, std::move(values));
}

}  // namespace uper
