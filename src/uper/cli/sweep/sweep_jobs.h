#pragma once

#include "uper/train/sweep/sweep_folder.h"
#include "uper/train/sweep/sweep_plan.h"

namespace uper {

// How many runs of a sweep are under way at a time. `asked` (0: as many as there are cores for) is
// what was asked for. Those that are not done must fit into the memory together, of which each run
// alone only sees what is free when it starts: throws Error(kResources) if the asked ones do not,
// and says so if there are fewer than cores.
int SweepJobs(int asked, const SweepFolder& folder, const SweepPlan& plan, const SweepState& state);

}  // namespace uper
