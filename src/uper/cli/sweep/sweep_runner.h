#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "uper/base/threads/parallel.h"
#include "uper/cli/sweep/sweep_job.h"
#include "uper/train/sweep/sweep_folder.h"
#include "uper/train/sweep/sweep_plan.h"

namespace uper::cli {

// The processors of each of `jobs` workers, `threads` for each (0: all). The lists are empty if
// there are not enough processors; then the system chooses.
std::vector<std::vector<int>> CpusOfWorkers(const std::vector<int>& usable, int jobs, int threads);

// Runs the unfinished runs of a sweep, `jobs` at a time, each as a SweepJob. state.json always has
// the state of every run. If the GPU is lost, the runner starts no further run and asks the running
// ones to end. Prints to standard error. Not thread-safe.
class SweepRunner {
 public:
  // REQUIRES: the folder exists, and the caller holds its lock.
  SweepRunner(const SweepFolder& folder, const SweepPlan& plan, SweepState& state, int jobs,
              TrainHere train);

  // Returns true when every run has ended once. Returns false after `stop`, when the running ones
  // have saved and ended. Throws Error(kResources) if the GPU was lost.
  bool Run(const StopFlag& stop);

 private:
  using Clock = std::chrono::steady_clock;

  struct Worker {
    std::vector<int> cpus;
    std::unique_ptr<SweepJob> job;  // null: idle
    std::size_t run = 0;
    Clock::time_point start;
  };

  void StartWhatFits();
  bool StartNext(Worker& worker);
  bool IsHeld(const SweepRun& run);
  void CollectEnded();
  void Ended(Worker& worker, int exit_code);
  void StopJobs() const;
  std::size_t Running() const;
  void Line(const std::string& text) const;
  void ShowStatus(bool now);
  void ClearStatus() const;

  const SweepFolder& folder_;
  const SweepPlan& plan_;
  SweepState& state_;
  const TrainHere train_;
  std::vector<std::size_t> waiting_;  // numbers of runs, next one first
  std::vector<Worker> workers_;
  const bool terminal_;
  bool told_held_ = false;
  bool gpu_lost_ = false;
  Clock::time_point last_status_;
};

}  // namespace uper::cli
