#include "experiments/cost_table/figure.h"

#include <algorithm>

#include "experiments/cost_table/model.h"
#include "uper/base/check.h"
#include "uper/base/files/csv_writer.h"
#include "uper/envs/registry.h"

namespace uper::experiments::cost_table {
namespace {

constexpr const char* kDefaultEnvironment = "atari/pong";

std::vector<std::string> KnownEnvironments() {
  std::vector<std::string> names = EnvironmentNames();
  if (std::find(names.begin(), names.end(), kDefaultEnvironment) == names.end()) {
    names.push_back(kDefaultEnvironment);
  }
  return names;
}

std::vector<SettingInfo> DeclareSettings() {
  using enum SettingInfo::Type;
  return {
      {.key = "environment",
       .type = kChoice,
       .default_text = kDefaultEnvironment,
       .description = "the game that is played",
       .choices = KnownEnvironments()},
      NumberSetting("iterations", kInteger, 40, 2, 1e6, "of each model; the second half counts"),
      NumberSetting("iteration_frames", kInteger, 1000, 1, 1e6, "frames of training per iteration"),
      NumberSetting("evaluation_frames", kInteger, 5000, 1, 1e7,
                    "frames of evaluation per iteration, as in the authors' script"),
      {.key = "readings",
       .type = kList,
       .default_text = "literal,script,script-twice",
       .description = "which of the readings to measure",
       .choices = {kReadings.begin(), kReadings.end()}}};
}

std::string MissingHere(const Settings& settings) {
  const std::string& wanted = settings.Text("environment");
  const std::vector<std::string> names = EnvironmentNames();
  if (std::find(names.begin(), names.end(), wanted) != names.end()) return "";
  return "needs the environment " + wanted +
         ", which this build does not have; --set environment=minatar/breakout times another game";
}

// Runs follow one after the other, so that they do not disturb each other's times.
void Measure(const FigureContext& context, std::vector<Cell>& table) {
  CsvWriter csv(context.folder / "iterations.csv",
                {"reading", "device", "architecture", "seed", "iteration", "iteration_seconds",
                 "environment_seconds"});
  context.progress.AddTasks(table.size() * static_cast<std::size_t>(context.seeds));
  const auto warn = [&](const std::string& message) { context.progress.Warn(message); };
  for (Cell& cell : table) {
    for (int seed = 1; seed <= context.seeds; ++seed) {
      const TimedTraining training = TrainingFor(cell, context.settings, seed);
      const std::vector<IterationTime> times =
          TimeTraining(training, context.jobs, context.stop, warn);
      UPER_CHECK(times.size() == static_cast<std::size_t>(training.iterations),
                 "one time per iteration");
      for (std::size_t i = 0; i < times.size(); ++i) {
        csv.Row(cell.reading, cell.device, cell.architecture->name, seed, i + 1, times[i].seconds,
                times[i].environment_seconds);
      }
      cell.Count(times);
      context.progress.TaskDone();
    }
  }
  csv.Commit();
}

std::vector<Claim> Run(const FigureContext& context) {
  std::vector<Cell> table = EmptyTable(context.settings.List("readings"), UsableDevices());
  Measure(context, table);
  WriteTable(context.folder / "data.csv", table);
  return CostClaims(table);
}

}  // namespace

Figure MakeFigure() {
  return {.id = "cost-table",
          .title = "Seconds an iteration takes: DQN, QR-DQN and the ensemble, beside the paper's",
          .default_seeds = 1,
          .settings = DeclareSettings(),
          .run = Run,
          .missing = MissingHere,
          .measures_time = true};
}

}  // namespace uper::experiments::cost_table
