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
//   state.json   the state of each run (SweepState)
//   runs/NAME/   the run folders          logs/NAME.log   what each run printed
//   summary.csv  one row per run          lock            held while a process runs the sweep
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
  kRunning,      // started; if no process runs the sweep now, it was killed
  kDone,         // reached its frames
  kFailed,       // ended with an error; the same command tries it again
  kInterrupted,  // saved; the same command goes on
};

std::string SweepStatusName(SweepStatus status);

// The progress of one run.
struct SweepProgress {
  SweepStatus status = SweepStatus::kPending;
  std::optional<int> exit_code;  // of its last session that ended
  int sessions = 0;              // how often it was started
};

// One entry per run of the plan, in its order.
using SweepState = std::vector<SweepProgress>;

// Reads state.json of a sweep that may have been started before; `plan` may have additional runs. A
// run counts as done if and only if its folder says that it is finished. Throws Error(kUsage) if
// the folder belongs to a sweep with other runs, Error(kCorrupt) if state.json is damaged.
SweepState LoadSweepState(const SweepFolder& folder, const SweepPlan& plan);
// Writes state.json durably.
void SaveSweepState(const SweepFolder& folder, const SweepPlan& plan, const SweepState& state);

// True if the run has reached the frames of the plan.
bool IsFinished(const SweepFolder& folder, const SweepRun& run);

// The run's summary.json; nothing if it is not finished.
std::optional<RunSummary> SummaryOf(const SweepFolder& folder, const SweepRun& run);

// summary.csv: run, a column per key of plan.columns, status, exit_code, final_eval_return,
// best_eval_return, frames, wall_seconds. Unknown values are empty. If a sweep is repeated, only
// the last column differs.
void WriteSweepSummary(const SweepFolder& folder, const SweepPlan& plan, const SweepState& state);

// The value of a key in a run, whether the sweep sets it or not.
std::string ValueIn(const SweepRun& run, const std::string& key);

}  // namespace uper
