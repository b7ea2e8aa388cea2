#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "experiments/framework/claim.h"
#include "experiments/framework/settings.h"
#include "uper/base/threads/parallel.h"
#include "uper/stats/run_curve.h"

namespace uper::experiments {

// Receives the progress of the work. Called from any thread.
class ProgressSink {
 public:
  virtual ~ProgressSink() = default;
  // A figure is about to do `tasks` more pieces of work of about equal size.
  virtual void AddTasks(std::size_t tasks) = 0;
  virtual void TaskDone() = 0;
  // A message for the user.
  virtual void Warn(const std::string& message) = 0;
};

// The inputs of a figure.
struct FigureContext {
  std::filesystem::path folder;  // exists; the figure writes its CSV files here
  int seeds = 1;                 // seeds are 1, ..., seeds
  int jobs = 1;                  // threads; simulated results do not depend on it
  const Settings& settings;
  ProgressSink& progress;
  const StopFlag& stop;
  std::span<const RunCurve> runs = {};  // empty unless the figure needs runs
};

// One figure of the paper. `run` simulates, or reads training runs. It writes CSV files into the
// folder and returns the claims that it tested. python/uper_plots draws the picture.
struct Figure {
  std::string id;     // as in `uper reproduce ID`
  std::string title;  // one line for listings
  int default_seeds = 10;
  std::vector<SettingInfo> settings;
  std::function<std::vector<Claim>(const FigureContext&)> run;
  bool needs_runs = false;  // made from context.runs; has the setting `partial`
  // Throws if `run` could not start with these runs and settings. It is called before anything is
  // written. Empty: there is nothing to check.
  std::function<void(std::span<const RunCurve>, const Settings&)> check;
  // Says what this machine or build lacks ("needs ..."), or nothing. Empty: nothing is ever
  // missing.
  std::function<std::string(const Settings&)> missing = {};
  bool measures_time = false;  // needs the machine for itself: not part of `reproduce all`
};

// All figures, in the order of the paper.
const std::vector<Figure>& AllFigures();

// Calls task(0..count-1) on context.jobs threads and reports progress; see ParallelFor.
void RunTasks(const FigureContext& context, std::size_t count,
              const std::function<void(std::size_t)>& task);

}  // namespace uper::experiments
