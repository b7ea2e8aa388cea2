#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "experiments/framework/claim.h"
#include "experiments/framework/settings.h"
#include "experiments/framework/training_bench.h"
#include "uper/base/threads/parallel.h"
#include "uper/stats/run_curve.h"

namespace uper::experiments {

// Told about work as it is done; called from any thread.
class ProgressSink {
 public:
  virtual ~ProgressSink() = default;
  // A figure is about to do `tasks` further pieces of work of about equal size.
  virtual void AddTasks(std::size_t tasks) = 0;
  virtual void TaskDone() = 0;
};

// What a figure gets to work with.
struct FigureContext {
  std::filesystem::path folder;  // exists; the figure writes its CSV files here
  int seeds = 1;                 // seeds are 1, ..., seeds
  int jobs = 1;                  // threads; results do not depend on it
  const Settings& settings;
  ProgressSink& progress;
  const StopFlag& stop;
  std::span<const RunCurve> runs = {};      // for a figure that needs them
  const TrainingBench* training = nullptr;  // null: nothing can be trained here
};

// One figure of the paper: a function that simulates, or reads training runs, writes CSV files into
// the folder and returns the claims it tested. Drawing is apart (python/uper_plots).
struct Figure {
  std::string id;     // as in `uper reproduce ID`
  std::string title;  // one line for listings
  int default_seeds = 10;
  std::vector<SettingInfo> settings;
  std::function<std::vector<Claim>(const FigureContext&)> run;
  bool needs_runs = false;  // made from context.runs; has the setting `partial`
  // Throws when `run` could not start with these runs and settings; called before anything is
  // written. Empty: nothing to check.
  std::function<void(std::span<const RunCurve>, const Settings&)> check;
  // What this machine or build lacks ("needs ..."); an empty text: nothing. Not set: never
  // anything.
  std::function<std::string(const Settings&)> missing = {};
  bool measures_time = false;  // wants the machine to itself: not part of `reproduce all`
};

// All figures, in the order of the paper.
const std::vector<Figure>& AllFigures();

// task(0..count-1) on context.jobs threads with progress; see ParallelFor.
void RunTasks(const FigureContext& context, std::size_t count,
              const std::function<void(std::size_t)>& task);

}  // namespace uper::experiments
