#include "apps/uper/run_setup.h"

#include "uper/base/parallel.h"
#include "uper/envs/registry.h"
#include "uper/nn/cpu/cpu_learner.h"
#include "uper/nn/gpu.h"
#include "uper/train/checkpoint_store.h"
#include "uper/train/experience.h"
#include "uper/train/make_learner.h"
#include "uper/train/resolve_config.h"

namespace uper {
namespace {

RecordExperienceOptions ExperienceOptionsOf(const RunConfig& config,
                                            std::size_t observation_bytes) {
  const ReplayConfig& replay = config.replay;
  return {.replay = {.buffer = {.capacity = static_cast<std::size_t>(replay.capacity_transitions),
                                .selector = replay.selector,
                                .selection = {.priority_exponent = replay.priority_exponent,
                                              .uniform_mix = replay.uniform_mix,
                                              .stratified = replay.stratified},
                                .largest_priority_decay = replay.largest_priority_decay},
                     .masks = {.members = static_cast<std::size_t>(config.network.members),
                               .probability = config.agent.mask_probability}},
          .observation_bytes = observation_bytes,
          .n_steps = static_cast<std::size_t>(config.agent.n_steps)};
}

}  // namespace

int ThreadsOf(const RunConfig& config) {
  return config.threads > 0 ? config.threads : AvailableCores();
}

std::unique_ptr<Environment> EnvironmentOf(const RunConfig& config, std::uint64_t index) {
  return MakeEnvironment(config.environment.name, config.environment.options,
                         static_cast<std::uint64_t>(config.seed), index);
}

DeviceChoice DeviceOf(const RunConfig& config) {
  if (config.device == DeviceChoice::kCpu) return DeviceChoice::kCpu;
  const GpuInfo gpu = FindGpu();
  if (gpu.usable) return DeviceChoice::kCuda;
  if (config.device == DeviceChoice::kAuto) return DeviceChoice::kCpu;
  throw Error(ErrorKind::kResources,
              "device 'cuda': " + gpu.why_not + "; --device cpu or auto runs on the CPU");
}

std::unique_ptr<Learner> LearnerOn(DeviceChoice device, const LearnerSpec& spec, ThreadPool& pool) {
  if (device == DeviceChoice::kCuda) return MakeGpuLearner(spec);
  return std::make_unique<CpuLearner>(spec, pool);
}

std::unique_ptr<Learner> LearnerOf(const RunConfig& config, ThreadPool& pool) {
  return LearnerOn(DeviceOf(config), LearnerSpecFrom(config, EnvironmentOf(config, 0)->spec()),
                   pool);
}

TrainerParts PartsOf(const RunConfig& config, ThreadPool& pool) {
  TrainerParts parts;
  parts.make_environment = [config](std::uint64_t index) { return EnvironmentOf(config, index); };
  parts.learner = LearnerOf(config, pool);
  InitializeLearner(config, *parts.learner);
  parts.experience = std::make_unique<RecordExperience>(
      ExperienceOptionsOf(config, EnvironmentOf(config, 0)->spec().observation_bytes()),
      static_cast<std::uint64_t>(config.seed));
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
