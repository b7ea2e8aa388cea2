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

namespace uper {

// The processors of each of `jobs` workers, `threads` apiece (0: all); empty lists when there are
// not enough for all, which leaves the choice to the system.
std::vector<std::vector<int>> CpusOfWorkers(const std::vector<int>& usable, int jobs, int threads);

// Runs what is not done of a sweep, `jobs` at a time, each as SweepJob says. state.json says at any
// moment how far it is. When the GPU is lost no further run is started and those under way are told
// to end. Prints to standard error. Not thread-safe.
class SweepRunner {
 public:
  // The folder exists and is locked by the caller.
  SweepRunner(const SweepFolder& folder, const SweepPlan& plan, SweepState& state, int jobs,
              TrainHere train);

  // Until every run has ended once. False when `stop` ended it before: the runs under way were
  // told, have saved and ended. Throws Error(kResources) when the GPU was lost.
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

}  // namespace uper
