#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "uper/train/run/run_folder.h"
#include "uper/train/run/run_record.h"
#include "uper/train/sweep/sweep_plan.h"

namespace uper {

// Names of the files in a sweep's folder.
//
//   sweep.toml   the file the sweep was started with
//   state.json   what became of each run so far (SweepState)
//   runs/NAME/   the run folders          logs/NAME.log   what each run printed
//   summary.csv  one row a run            lock            held while a process runs the sweep
//   slurm/       script, log files and job number of --slurm
class SweepFolder {
 public:
  explicit SweepFolder(std::filesystem::path path) : path_(std::move(path)) {}

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path file() const { return path_ / "sweep.toml"; }
  std::filesystem::path state() const { return path_ / "state.json"; }
  std::filesystem::path summary() const { return path_ / "summary.csv"; }
  std::filesystem::path lock() const { return path_ / "lock"; }
  std::filesystem::path slurm() const { return path_ / "slurm"; }
  std::filesystem::path logs() const { return path_ / "logs"; }
  std::filesystem::path log(const SweepRun& run) const { return logs() / (run.name + ".log"); }
  RunFolder run(const SweepRun& run) const { return RunFolder(path_ / "runs" / run.name); }

 private:
  std::filesystem::path path_;
};

enum class SweepStatus {
  kPending,      // not started yet
  kRunning,      // started; if nobody runs the sweep any more: killed with it
  kDone,         // reached its frames
  kFailed,       // ended with an error; the same command tries it again
  kInterrupted,  // saved; the same command goes on
};

std::string SweepStatusName(SweepStatus status);

// What became of one run.
struct SweepProgress {
  SweepStatus status = SweepStatus::kPending;
  std::optional<int> exit_code;  // of its last session that ended
  int sessions = 0;              // how often it was started
};

// One for each run of the plan, in its order.
using SweepState = std::vector<SweepProgress>;

// state.json of a sweep that may have been started before; `plan` may have further runs. A run that
// is finished in its folder counts as done, one that is not does not. Throws Error(kUsage) if
// the folder belongs to a sweep with other runs, Error(kCorrupt) if state.json is damaged.
SweepState LoadSweepState(const SweepFolder& folder, const SweepPlan& plan);
// Durable when it returns.
void SaveSweepState(const SweepFolder& folder, const SweepPlan& plan, const SweepState& state);

// Did the run reach the frames that the plan asks for?
bool IsFinished(const SweepFolder& folder, const SweepRun& run);

// The run's summary.json; nothing if it is not finished.
std::optional<RunSummary> SummaryOf(const SweepFolder& folder, const SweepRun& run);

// summary.csv: run, a column a key of plan.columns, status, exit_code, final_eval_return,
// best_eval_return, frames, wall_seconds. What is not known is empty. Only the last column differs
// when a sweep is repeated.
void WriteSweepSummary(const SweepFolder& folder, const SweepPlan& plan, const SweepState& state);

// The value of a key in a run, whoever set it.
std::string ValueIn(const SweepRun& run, const std::string& key);

}  // namespace uper
