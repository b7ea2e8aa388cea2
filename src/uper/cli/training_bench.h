#pragma once

#include "experiments/framework/training_bench.h"
#include "uper/base/threads/parallel.h"

namespace uper {

// Training for the figures that time it, with so many threads. `stop` must outlive it.
experiments::TrainingBench MakeTrainingBench(int threads, const StopFlag& stop);

}  // namespace uper
