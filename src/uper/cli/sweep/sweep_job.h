#pragma once

#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "uper/base/threads/parallel.h"
#include "uper/train/sweep/sweep_folder.h"
#include "uper/train/sweep/sweep_plan.h"

namespace uper {

// `uper train` for one run of a sweep: program, then arguments.
std::vector<std::string> TrainCommand(const SweepFolder& folder, const SweepRun& run);

// Trains a run in the calling thread as `uper train` would, and prints into `log`. Returns the exit
// code or throws.
using TrainHere = std::function<int(const SweepFolder& folder, const SweepRun& run, std::FILE* log,
                                    const StopFlag& stop)>;

// A run of a sweep under way. What it prints goes to the sweep's log of it.
class SweepJob {
 public:
  virtual ~SweepJob() = default;

  // Nothing while it runs.
  virtual std::optional<int> ExitCodeIfEnded() = 0;
  // Tells it to save and end.
  virtual void Stop() = 0;
};

// Start a run on these processors (empty: on all), as a process of its own or as a thread of this
// one. A thread must have ended before the job is destroyed, or is waited for.
std::unique_ptr<SweepJob> StartProcessJob(const SweepFolder& folder, const SweepRun& run,
                                          const std::vector<int>& cpus);
std::unique_ptr<SweepJob> StartThreadJob(const SweepFolder& folder, const SweepRun& run,
                                         const std::vector<int>& cpus, const TrainHere& train);
// A process for a run on the CPU, a thread for one on the GPU: the GPU gives each process turns of
// its own, but works on what the threads of one process want at the same time.
std::unique_ptr<SweepJob> StartSweepJob(const SweepFolder& folder, const SweepRun& run,
                                        const std::vector<int>& cpus, const TrainHere& train);

}  // namespace uper
