#pragma once

#include "uper/cli/commands.h"

namespace uper {

// `uper bench learner --parts`: where an update on the CPU spends its time, beside what the machine
// can do.
int BenchStepParts(const BenchLearnerOptions& options, const StopFlag& stop);

}  // namespace uper
