#pragma once

#include "uper/train/sweep/sweep_folder.h"
#include "uper/train/sweep/sweep_plan.h"

namespace uper::cli {

// The number of runs of a sweep at a time. `asked` is the user's number, or 0 for as many as there
// are cores for. Runs at the same time must fit into memory together. A run itself checks only the
// memory that is free when it starts. Throws Error(kResources) if `asked` runs do not fit. Without
// `asked`, prints a message if fewer runs fit than there are cores for.
int SweepJobs(int asked, const SweepFolder& folder, const SweepPlan& plan, const SweepState& state);

}  // namespace uper::cli
