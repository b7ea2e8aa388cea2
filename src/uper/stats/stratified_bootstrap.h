#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "uper/stats/bootstrap.h"
#include "uper/stats/task_scores.h"

namespace uper {

// The runs of a resample, [task][draw]: indices into the runs of that task.
using RunIndices = std::vector<std::vector<std::uint32_t>>;

// `replications` resamples of the runs of each task, with replacement and independently in each;
// the tasks are fixed. Deterministic: they depend on `seed` and the numbers of runs alone.
std::vector<RunIndices> DrawResamples(const TaskScores& scores, int replications,
                                      std::uint64_t seed = 0);

TaskScores Resampled(const TaskScores& scores, const RunIndices& indices);

using ScoreStatistic = std::function<double(const TaskScores&)>;

// The statistic with its percentile interval (2.5 % to 97.5 %) over the given resamples. If every
// task has one run, there is no spread: the interval is then unbounded, as in BootstrapMean().
Interval StratifiedInterval(const TaskScores& scores, const std::vector<RunIndices>& resamples,
                            const ScoreStatistic& statistic);

using ComparisonStatistic = std::function<double(const TaskScores&, const TaskScores&)>;

// The same for a statistic of two algorithms, each resampled by its own indices.
// REQUIRES: as many resamples of one as of the other.
Interval StratifiedInterval(const TaskScores& x, const TaskScores& y,
                            const std::vector<RunIndices>& x_resamples,
                            const std::vector<RunIndices>& y_resamples,
                            const ComparisonStatistic& statistic);

}  // namespace uper
