#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <nlohmann/json.hpp>

#include "uper/base/files/atomic_file.h"
#include "uper/cli/commands.h"
#include "uper/cli/exit_code.h"
#include "uper/cli/python_tools.h"
#include "uper/cli/train_display.h"
#include "uper/cli/version.h"
#include "uper/nn/cpu/kernels/simd_info.h"
#include "uper/nn/gpu.h"
#include "uper/train/config/config_io.h"
#include "uper/train/config/resolve_config.h"
#include "uper/train/run/run_lock.h"
#include "uper/train/run/run_record.h"
#include "uper/train/run/run_setup.h"

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

std::filesystem::path DefaultFolder(const RunConfig& config) {
  std::string env = config.environment.name;
  std::replace(env.begin(), env.end(), '/', '-');
  return std::filesystem::path("runs") /
         fmt::format("{}-{}-{}", env, config.agent.name, config.seed);
}

void WriteRunStart(const RunFolder& folder, const RunConfig& config,
                   const std::vector<std::string>& command) {
  RunRecord record{.version = ProgramVersion(),
                   .git_revision = ProgramRevision(),
                   .git_dirty = ProgramRevision().ends_with("-dirty"),
                   .command = RecordedCommand(command),
                   .seed = config.seed,
                   .machine = DescribeMachine(),
                   .start_time = UtcTime(static_cast<std::int64_t>(std::time(nullptr)))};
  record.machine.instruction_path = cpu::SimdTargetName();
  if (ResolveDevice(config) == DeviceChoice::kCuda) record.machine.gpu = QueryGpu().name;
  WriteRunRecord(folder.run_json(), record);
  WriteFileAtomically(folder.config(),
                      DumpToml(config));  // last, because this file makes the folder a run
}

// Makes it possible to continue and evaluate the run from any folder.
void MakeRomFolderAbsolute(RunConfig& config) {
  std::string& roms = config.environment.options.rom_dir;
  if (!roms.empty()) roms = std::filesystem::absolute(roms).lexically_normal().string();
}

// The configuration to continue with, or nothing if the run has finished.
std::optional<RunConfig> Continued(const RunFolder& folder, const RunConfig& requested) {
  RunConfig stored = ReadDumpedConfig(folder.config());
  MakeRomFolderAbsolute(stored);
  const RunConfig config = ConfigForResume(stored, requested);
  const std::optional<std::int64_t> finished = folder.FinishedFrames();
  if (finished && *finished >= config.frames) return std::nullopt;
  if (finished) folder.ClearFinished();
  WriteFileAtomically(folder.config(), DumpToml(config));
  return config;
}

RunSummary SummaryOf(const RunConfig& config, Trainer& trainer) {
  const double seconds = trainer.wall_seconds();
  return {.agent = config.agent.name,
          .env = config.environment.name,
          .seed = config.seed,
          .frames = trainer.frames(),
          .updates = trainer.updates(),
          .final_eval_return = trainer.final_eval_return(),
          .best_eval_return = trainer.best_eval_return(),
          .wall_seconds = seconds,
          .frames_per_second = seconds > 0 ? static_cast<double>(trainer.frames()) / seconds : 0};
}

void Finish(const RunFolder& folder, const RunConfig& config, Trainer& trainer, bool plots,
            TrainDisplay& display) {
  WriteRunSummary(folder.summary(), SummaryOf(config, trainer));
  folder.MarkFinished(trainer.frames());
  if (!plots) return;
  try {
    DrawRun(folder.path());
  } catch (const Error& error) {
    display.Warn(std::string("the curves were not drawn: ") + error.what());
  }
}

void PrintSummary(const RunFolder& folder, bool json, std::FILE* out) {
  const RunSummary summary = ReadRunSummary(folder.summary());
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
  RunConfig config = ResolveConfig(InputsFrom(options));
  FillAutomaticKeys(config, FramesPerStepOf(config));
  MakeRomFolderAbsolute(config);
  // Errors that can be known now are thrown before anything is written.
  ResolveDevice(config);
  CheckEnvironmentFor(config);
  const RunFolder folder(options.folder.empty() ? DefaultFolder(config) : options.folder);
  CreateWritableFolder(folder.path());
  const RunLock lock(folder.lock());
  if (folder.State() == RunState::kNew) {
    CheckPlan(PlanRun(config), ResourcesFor(folder));
    WriteRunStart(folder, config, options.command);
  } else {
    const std::optional<RunConfig> continued = Continued(folder, config);
    if (!continued) {
      fmt::print(messages, "the run in {} is finished; raise --frames to train on\n",
                 folder.path().string());
      PrintSummary(folder, options.json, results);
      return kExitDone;
    }
    config = *continued;
    CheckPlan(PlanRun(config), ResourcesFor(folder));
  }
  TrainDisplay display(messages);
  display.Warn("the run " + DescribePlan(PlanRun(config), ResourcesFor(folder)));
  ThreadPool pool(ThreadsOf(config));
  if (const std::string why = CpuFallbackReason(config); !why.empty()) {
    display.Warn("training on the CPU: " + why);
  }
  Trainer trainer(config, folder, MakeTrainerParts(config, pool),
                  {.progress = [&](const TrainingProgress& progress) { display.Show(progress); },
                   .warn = [&](const std::string& message) { display.Warn(message); }});
  if (!trainer.Run(stop)) {
    display.Warn(fmt::format("interrupted and saved at frame {}; run the same command to go on",
                             trainer.frames()));
    return kExitInterruptedSaved;
  }
  Finish(folder, config, trainer, options.plots, display);
  PrintSummary(folder, options.json, results);
  return kExitDone;
}

}  // namespace uper::cli
