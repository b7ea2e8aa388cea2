#pragma once

#include <filesystem>
#include <vector>

#include "uper/stats/run_curve.h"

namespace uper::cli {

// The evaluations of training runs to compare. A folder that holds runs stands for all of them. A
// run that is named twice counts once. Throws
//   Error(kMissingData)  no such folder, not a run, nothing evaluated yet, or unfinished (unless
//                        `partial`);
//   Error(kCorrupt)      a file of the run is damaged, or metrics.csv lacks an evaluation that the
//                        run made;
//   Error(kUsage)        the runs are not comparable: different suites, environment options,
//                        evaluation or length (the last unless `partial`), or the same agent with
//                        different settings. The message names both runs and the keys. An option
//                        that is left to the environment equals the value that it stands for.
std::vector<RunCurve> ReadRuns(const std::vector<std::filesystem::path>& folders, bool partial);

}  // namespace uper::cli
