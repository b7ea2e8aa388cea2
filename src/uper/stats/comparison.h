#pragma once

#include <optional>
#include <span>
#include <vector>

#include "uper/stats/task_scores.h"

namespace uper {

// Probability that a run of x beats a run of y on a task drawn at random. It is the mean over tasks
// of (pairs with x > y + half of the ties) / pairs, the Mann-Whitney U. Equal samples give 0.5.
// REQUIRES: the same tasks in the same order, none without runs.
double ProbabilityOfImprovement(const TaskScores& x, const TaskScores& y);

// For each threshold the share of all runs of all tasks with a score above it (strictly).
std::vector<double> PerformanceProfile(const TaskScores& scores, std::span<const double> taus);

// The paper's cumulative improvement of x over y, in percent: 100 * sum_t [x(t) - y(t)] / sum_t
// y(t), of normalized scores at the same frame marks. Returns nothing if the sum of y is not
// positive: the ratio would be meaningless or have the wrong sign. REQUIRES: curves of equal
// length.
std::optional<double> CumulativeImprovement(std::span<const double> x, std::span<const double> y);

}  // namespace uper
