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

namespace uper::cli {

// The command line of `uper train` for one run of a sweep: the program, then its arguments.
std::vector<std::string> TrainCommand(const SweepFolder& folder, const SweepRun& run);

// Trains a run in the calling thread like `uper train` and prints to `log`. Returns the exit code
// or throws.
using TrainHere = std::function<int(const SweepFolder& folder, const SweepRun& run, std::FILE* log,
                                    const StopFlag& stop)>;

// A running run of a sweep. It prints to its own log file in the sweep's folder.
class SweepJob {
 public:
  virtual ~SweepJob() = default;

  // Empty while it runs.
  virtual std::optional<int> ExitCodeIfEnded() = 0;
  // Asks it to save and end.
  virtual void Stop() = 0;
};

// Start a run on these processors (empty: on all), as a child process or as a thread of this
// process. The destructor of a thread's job waits for the thread.
std::unique_ptr<SweepJob> StartProcessJob(const SweepFolder& folder, const SweepRun& run,
                                          const std::vector<int>& cpus);
std::unique_ptr<SweepJob> StartThreadJob(const SweepFolder& folder, const SweepRun& run,
                                         const std::vector<int>& cpus, const TrainHere& train);
// Starts a process for a run on the CPU and a thread for a run on the GPU. The GPU serves processes
// in turns, but runs the work of several threads of one process at the same time.
std::unique_ptr<SweepJob> StartSweepJob(const SweepFolder& folder, const SweepRun& run,
                                        const std::vector<int>& cpus, const TrainHere& train);

}  // namespace uper::cli
