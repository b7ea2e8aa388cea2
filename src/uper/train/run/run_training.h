#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "uper/base/threads/parallel.h"
#include "uper/train/config/config.h"
#include "uper/train/loop/trainer.h"
#include "uper/train/run/run_folder.h"
#include "uper/train/run/run_record.h"

namespace uper {

// The program and the command that start a run, for its run.json.
struct RunOrigin {
  std::string version;
  std::string git_revision;          // ends with "-dirty" if files were changed
  std::vector<std::string> command;  // as typed
};

enum class RunEnd {
  kFinished,
  kInterrupted,      // by `stop`, and saved: the same call continues it
  kFinishedAlready,  // before: nothing was done
};

struct RunResult {
  RunEnd end = RunEnd::kFinished;
  RunSummary summary;  // of an interrupted run: so far
};

// runs/ENVIRONMENT-AGENT-SEED.
std::filesystem::path DefaultRunFolder(const RunConfig& config);

// Trains in a folder from start to end: a new run, or the one that the folder holds. Locks the
// folder, checks memory and disk, writes config.toml, run.json, logs, checkpoints and summary.json.
// `config` comes from ResolveConfig(). Throws Error, and nothing is lost: kUsage if the folder has
// a run with another configuration, kResources if another process has locked it.
RunResult RunTraining(RunConfig config, const RunFolder& folder, const RunOrigin& origin,
                      TrainerCallbacks callbacks, const StopFlag& stop);

}  // namespace uper
