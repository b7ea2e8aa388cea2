#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "uper/train/sweep_folder.h"
#include "uper/train/sweep_plan.h"

namespace uper {

// `uper train` for one run of a sweep: program, then arguments.
std::vector<std::string> TrainCommand(const SweepFolder& folder, const SweepRun& run);

// A run of a sweep under way. What it prints goes to the sweep's log of it.
class SweepJob {
 public:
  virtual ~SweepJob() = default;

  // Nothing while it runs.
  virtual std::optional<int> ExitCodeIfEnded() = 0;
  // Tells it to save and end.
  virtual void Stop() = 0;
};

// Starts a run on these processors (empty: on all). A run on the CPU is a process of its own; one
// on the GPU is a thread of this process, because the GPU gives each process turns of its own but
// works on what the threads of one process want at the same time.
std::unique_ptr<SweepJob> StartSweepJob(const SweepFolder& folder, const SweepRun& run,
                                        const std::vector<int>& cpus);

}  // namespace uper
