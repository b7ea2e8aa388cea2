#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "uper/cli/commands.h"
#include "uper/cli/exit_code.h"
#include "uper/cli/python_tools.h"
#include "uper/cli/train_display.h"
#include "uper/cli/version.h"
#include "uper/train/config/resolve_config.h"
#include "uper/train/run/run_training.h"

namespace uper::cli {
namespace {

ConfigInputs InputsFrom(const TrainOptions& options) {
  ConfigInputs inputs;
  if (!options.config_file.empty()) inputs.file = options.config_file;
  const auto add = [&](const char* flag, const char* key, const std::string& value) {
    if (!value.empty()) inputs.flags.push_back({.flag = flag, .key = key, .value = value});
  };
  add("--agent", "agent.name", options.agent);
  add("--env", "environment.name", options.env);
  add("--frames", "frames", options.frames);
  add("--seed", "seed", options.seed);
  add("--device", "device", options.device);
  inputs.settings = options.assignments;
  return inputs;
}

void DrawCurves(const RunFolder& folder, TrainDisplay& display) {
  try {
    DrawRun(folder.path());
  } catch (const Error& error) {
    display.Warn(std::string("the curves were not drawn: ") + error.what());
  }
}

void PrintSummary(const RunFolder& folder, const RunSummary& summary, bool json, std::FILE* out) {
  if (json) {
    nlohmann::ordered_json result = {{"run", folder.path().string()},
                                     {"frames", summary.frames},
                                     {"updates", summary.updates},
                                     {"frames_per_second", summary.frames_per_second}};
    result["final_eval_return"] = summary.final_eval_return
                                      ? nlohmann::ordered_json(*summary.final_eval_return)
                                      : nlohmann::ordered_json(nullptr);
    fmt::print(out, "{}\n", result.dump());
    return;
  }
  fmt::print(out, "{}: {} frames, {} updates, final evaluation {}, {:.0f} frames per second\n",
             folder.path().string(), summary.frames, summary.updates,
             summary.final_eval_return ? fmt::format("{:.2f}", *summary.final_eval_return) : "none",
             summary.frames_per_second);
}

}  // namespace

int RunTrain(const TrainOptions& options, const StopFlag& stop) {
  std::FILE* const messages = options.log != nullptr ? options.log : stderr;
  std::FILE* const results = options.log != nullptr ? options.log : stdout;
  const RunConfig config = ResolveConfig(InputsFrom(options));
  const RunFolder folder(options.folder.empty() ? DefaultRunFolder(config) : options.folder);
  TrainDisplay display(messages);
  const RunResult result = RunTraining(
      config, folder,
      {.version = ProgramVersion(), .git_revision = ProgramRevision(), .command = options.command},
      {.progress = [&](const TrainingProgress& progress) { display.Show(progress); },
       .warn = [&](const std::string& message) { display.Warn(message); }},
      stop);
  if (result.end == RunEnd::kInterrupted) {
    display.Warn(fmt::format("interrupted and saved at frame {}; run the same command to go on",
                             result.summary.frames));
    return kExitInterruptedSaved;
  }
  if (result.end == RunEnd::kFinishedAlready) {
    fmt::print(messages, "the run in {} is finished; raise --frames to train on\n",
               folder.path().string());
  } else if (options.plots) {
    DrawCurves(folder, display);
  }
  PrintSummary(folder, result.summary, options.json, results);
  return kExitDone;
}

}  // namespace uper::cli
