#pragma once

#include <vector>

namespace uper {

// Normalized scores [task][run] of one algorithm. Tasks may have different numbers of runs; no task
// is empty. A "run" index means the same seed in all tasks only where a function says so.
using TaskScores = std::vector<std::vector<double>>;

}  // namespace uper
