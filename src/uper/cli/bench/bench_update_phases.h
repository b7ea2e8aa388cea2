#pragma once

#include "uper/cli/commands.h"

namespace uper::cli {

// `uper bench learner --parts`: the time of each phase of an update on the CPU, compared with the
// best speeds of the machine.
int BenchUpdatePhases(const BenchLearnerOptions& options, const StopFlag& stop);

}  // namespace uper::cli
