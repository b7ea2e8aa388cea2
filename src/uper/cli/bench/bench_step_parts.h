#pragma once

#include "uper/cli/commands.h"

namespace uper::cli {

// `uper bench learner --parts`: the time of each part of an update on the CPU, compared with the
// best speeds of the machine.
int BenchStepParts(const BenchLearnerOptions& options, const StopFlag& stop);

}  // namespace uper::cli
