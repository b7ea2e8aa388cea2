#pragma once

#include <vector>

#include "uper/stats/task_scores.h"

namespace uper {

// Point estimates over tasks and runs, as defined by Agarwal et al. 2021 and computed by their
// package `rliable`. REQUIRES everywhere: at least one task, no task without runs.

double Mean(const std::vector<double>& values);
// Mean of the two middle values when their number is even.
double Median(std::vector<double> values);
// Population standard deviation (divides by n).
double StandardDeviation(const std::vector<double>& values);

// Median over tasks of the mean over runs.
double MedianOfTaskMeans(const TaskScores& scores);
// Mean over tasks of the mean over runs.
double MeanOfTaskMeans(const TaskScores& scores);
// Interquartile mean: the mean of all runs of all tasks pooled, without floor(n / 4) of them at
// each end.
double InterquartileMean(const TaskScores& scores);
// gamma - mean(min(score, gamma)), over all runs pooled: the average distance below `gamma` (1: the
// human), without credit for scores above it.
double OptimalityGap(const TaskScores& scores, double gamma = 1);

// For each run index, the median over tasks: DQN Zoo's and the paper's order. REQUIRES: all tasks
// have the same number of runs, and a run index is the same seed in each.
std::vector<double> MediansOverTasks(const TaskScores& scores);

}  // namespace uper
