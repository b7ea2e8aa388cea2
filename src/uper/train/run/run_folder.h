#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "uper/train/loop/trainer.h"

namespace uper {

enum class RunState {
  kNew,         // there is no file of a run
  kUnfinished,  // a run was started
  kFinished,    // it reached its number of frames
};

// Names of the files in a run folder, and the state of its run.
//
//   config.toml  run.json  metrics.csv  events.out.tfevents.*  summary.json  plots/  checkpoints/
//   lock         held while a process trains (run_lock.h)
//   finished     appears when the run has ended; holds the number of frames
class RunFolder {
 public:
  explicit RunFolder(std::filesystem::path path) : path_(std::move(path)) {}

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path config() const { return path_ / "config.toml"; }
  std::filesystem::path run_json() const { return path_ / "run.json"; }
  std::filesystem::path metrics() const { return path_ / "metrics.csv"; }
  // One name for all sessions of the run, so that a restart replaces or continues the file.
  std::filesystem::path events() const { return path_ / "events.out.tfevents.0000000001.uper"; }
  std::filesystem::path summary() const { return path_ / "summary.json"; }
  std::filesystem::path plots() const { return path_ / "plots"; }
  std::filesystem::path checkpoints() const { return path_ / "checkpoints"; }
  TrainerFiles trainer_files() const {
    return {.metrics = metrics(), .events = events(), .checkpoints = checkpoints()};
  }
  std::filesystem::path lock() const { return path_ / "lock"; }
  std::filesystem::path finished() const { return path_ / "finished"; }

  // Throws Error(kCorrupt) for checkpoints without config.toml, or for an invalid finished marker.
  RunState State() const;
  // Frames at the end of the run; nothing if it has not ended.
  std::optional<std::int64_t> FinishedFrames() const;
  void MarkFinished(std::int64_t frames) const;
  // For a run whose `frames` was raised.
  void ClearFinished() const;

 private:
  std::filesystem::path path_;
};

}  // namespace uper
