#include "apps/uper/run_setup.h"

#include "uper/base/parallel.h"
#include "uper/envs/registry.h"
#include "uper/nn/cpu/cpu_learner.h"
#include "uper/train/checkpoint_store.h"
#include "uper/train/make_experience.h"
#include "uper/train/make_learner.h"
#include "uper/train/resolve_config.h"

namespace uper {
int ThreadsOf(const RunConfig& config) {
  return config.threads > 0 ? config.threads : AvailableCores();
}

std::unique_ptr<Environment> EnvironmentOf(const RunConfig& config, std::uint64_t index) {
  return MakeEnvironment(config.environment.name, config.environment.options,
                         static_cast<std::uint64_t>(config.seed), index);
}

void CheckDevice(const RunConfig& config) {
  if (config.device != DeviceChoice::kCuda) return;
  throw Error(ErrorKind::kResources,
              "device 'cuda': this version runs on the CPU only; use --device cpu or auto");
}

std::unique_ptr<Learner> LearnerOf(const RunConfig& config, ThreadPool& pool) {
  CheckDevice(config);
  const LearnerSpec spec = LearnerSpecFrom(config, EnvironmentOf(config, 0)->spec());
  return std::make_unique<CpuLearner>(spec, pool);
}

TrainerParts PartsOf(const RunConfig& config, ThreadPool& pool) {
  TrainerParts parts;
  parts.make_environment = [config](std::uint64_t index) { return EnvironmentOf(config, index); };
  parts.learner = LearnerOf(config, pool);
  InitializeLearner(config, *parts.learner);
  parts.experience = MakeExperience(config, EnvironmentOf(config, 0)->spec());
  parts.environment_threads = ThreadsOf(config);
  return parts;
}

SavedRun OpenRun(const RunFolder& folder) {
  if (folder.State() == RunState::kNew) {
    throw Error(ErrorKind::kMissingData, "there is no run in " + folder.path().string());
  }
  SavedRun run{.config = ReadDumpedConfig(folder.config())};
  LoadResult loaded = CheckpointStore(folder.checkpoints()).Load();
  if (!loaded.checkpoint) {
    throw Error(ErrorKind::kMissingData,
                "the run in " + folder.path().string() + " has not saved anything yet");
  }
  run.checkpoint = std::move(*loaded.checkpoint);
  return run;
}

}  // namespace uper
