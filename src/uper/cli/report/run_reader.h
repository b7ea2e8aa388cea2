#pragma once

#include <filesystem>
#include <vector>

#include "uper/stats/run_curve.h"

namespace uper {

// The evaluations of training runs that are to be compared. A folder that is no run but holds some
// stands for all runs in it; the same folder twice counts once. Throws
//   Error(kMissingData)  no such folder, not a run, nothing evaluated yet, or unfinished (unless
//                        `partial`);
//   Error(kCorrupt)      a file of the run that cannot be read as what it should be, or a
//                        metrics.csv without an evaluation that the run made;
//   Error(kUsage)        runs that must not be compared: different suites, environment options,
//                        evaluation or length (the last unless `partial`), or the same agent with
//                        different settings. The message names both runs and the keys. An option
//                        that is left to the environment equals the value that this stands for.
std::vector<RunCurve> ReadRuns(const std::vector<std::filesystem::path>& folders, bool partial);

}  // namespace uper
