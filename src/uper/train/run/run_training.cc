#include "uper/train/run/run_training.h"

#include <algorithm>
#include <ctime>
#include <optional>

#include "uper/base/files/atomic_file.h"
#include "uper/nn/cpu/kernels/simd_info.h"
#include "uper/nn/gpu.h"
#include "uper/train/config/config_io.h"
#include "uper/train/config/resolve_config.h"
#include "uper/train/run/run_lock.h"
#include "uper/train/run/run_setup.h"

namespace uper {
namespace {

void WriteRunStart(const RunFolder& folder, const RunConfig& config, const RunOrigin& origin) {
  RunRecord record{.version = origin.version,
                   .git_revision = origin.git_revision,
                   .git_dirty = origin.git_revision.ends_with("-dirty"),
                   .command = RecordedCommand(origin.command),
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

// Writes the files of a new run, or finds the configuration of the run to continue. Nothing if that
// has finished.
std::optional<RunConfig> OpenFolder(const RunFolder& folder, const RunConfig& requested,
                                    const RunOrigin& origin) {
  if (folder.State() == RunState::kNew) {
    CheckPlan(PlanRun(requested), ResourcesFor(folder));
    WriteRunStart(folder, requested, origin);
    return requested;
  }
  const std::optional<RunConfig> continued = Continued(folder, requested);
  if (continued) CheckPlan(PlanRun(*continued), ResourcesFor(folder));
  return continued;
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

RunResult TrainToEnd(const RunConfig& config, const RunFolder& folder,
                     const TrainerCallbacks& callbacks, const StopFlag& stop) {
  ThreadPool pool(ThreadsOf(config));
  Trainer trainer(config, folder.trainer_files(), MakeTrainerParts(config, pool), callbacks);
  const bool finished = trainer.Run(stop);
  RunResult result{.end = finished ? RunEnd::kFinished : RunEnd::kInterrupted,
                   .summary = SummaryOf(config, trainer)};
  if (!finished) return result;
  WriteRunSummary(folder.summary(), result.summary);
  folder.MarkFinished(trainer.frames());
  return result;
}

}  // namespace

std::filesystem::path DefaultRunFolder(const RunConfig& config) {
  std::string env = config.environment.name;
  std::replace(env.begin(), env.end(), '/', '-');
  return std::filesystem::path("runs") /
         (env + "-" + config.agent.name + "-" + std::to_string(config.seed));
}

RunResult RunTraining(RunConfig config, const RunFolder& folder, const RunOrigin& origin,
                      TrainerCallbacks callbacks, const StopFlag& stop) {
  if (!callbacks.warn) callbacks.warn = [](const std::string&) {};
  FillAutomaticKeys(config, FramesPerStepOf(config));
  MakeRomFolderAbsolute(config);
  // These throw all errors that can be found before anything is written.
  ResolveDevice(config);
  CheckEnvironmentFor(config);
  CreateWritableFolder(folder.path());
  const RunLock lock(folder.lock());
  const std::optional<RunConfig> actual = OpenFolder(folder, config, origin);
  if (!actual) {
    return {.end = RunEnd::kFinishedAlready, .summary = ReadRunSummary(folder.summary())};
  }
  callbacks.warn("the run " + DescribePlan(PlanRun(*actual), ResourcesFor(folder)));
  if (const std::string why = CpuFallbackReason(*actual); !why.empty()) {
    callbacks.warn("training on the CPU: " + why);
  }
  return TrainToEnd(*actual, folder, callbacks, stop);
}

}  // namespace uper
