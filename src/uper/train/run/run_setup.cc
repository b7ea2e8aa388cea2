#include "uper/train/run/run_setup.h"

#include <new>

#include "uper/base/threads/parallel.h"
#include "uper/checkpoint/checkpoint_store.h"
#include "uper/engine/make_device_replay.h"
#include "uper/envs/registry.h"
#include "uper/nn/gpu.h"
#include "uper/nn/make_cpu_learner.h"
#include "uper/train/config/config_choices.h"
#include "uper/train/config/resolve_config.h"
#include "uper/train/run/make_engine.h"
#include "uper/train/run/make_learner.h"
#include "uper/train/run/make_store.h"
#include "uper/train/run/memory_info.h"

namespace uper {

int ThreadsOf(const RunConfig& config) {
  return config.threads > 0 ? config.threads : AvailableCores();
}

int FramesPerStepOf(const RunConfig& config) { return SpecFor(config).max_frames_per_step; }

EnvironmentSpec SpecFor(const RunConfig& config) {
  return SpecFor(config.environment.name, config.environment.options);
}

void CheckEnvironmentFor(const RunConfig& config) {
  CheckEnvironment(config.environment.name, config.environment.options);
}

std::unique_ptr<Environment> MakeEnvironmentFor(const RunConfig& config, std::uint64_t index) {
  return MakeEnvironment(config.environment.name, config.environment.options,
                         static_cast<std::uint64_t>(config.seed), index);
}

DeviceChoice ResolveDevice(const RunConfig& config) {
  // A registered priority is a function of the host.
  const bool host_only = !IsBuiltIn(config.agent.priority);
  if (config.device == DeviceChoice::kCpu || host_only) return DeviceChoice::kCpu;
  const GpuInfo gpu = QueryGpu();
  if (gpu.usable) return DeviceChoice::kCuda;
  if (config.device == DeviceChoice::kAuto) {
    if (config.precision == Precision::kFp32) return DeviceChoice::kCpu;
    throw Error(ErrorKind::kUsage, "precision '" + std::string(ChoiceName(config.precision)) +
                                       "' needs a GPU: " + gpu.unusable_because +
                                       "; precision 'fp32' runs on the CPU");
  }
  throw Error(ErrorKind::kResources,
              "device 'cuda': " + gpu.unusable_because + "; --device cpu or auto runs on the CPU");
}

std::string CpuFallbackReason(const RunConfig& config) {
  const bool falls_back =
      config.device == DeviceChoice::kAuto && ResolveDevice(config) == DeviceChoice::kCpu;
  return falls_back && QueryGpu().built ? QueryGpu().unusable_because : "";
}

std::unique_ptr<Learner> MakeLearnerOn(DeviceChoice device, const LearnerSpec& spec,
                                       ThreadPool& pool) {
  if (device == DeviceChoice::kCuda) return MakeGpuLearner(spec);
  return MakeCpuLearner(spec, pool);
}

std::unique_ptr<Learner> MakeLearnerFor(const RunConfig& config, ThreadPool& pool) {
  return MakeLearnerOn(ResolveDevice(config), LearnerSpecFrom(config, SpecFor(config)), pool);
}

TrainerParts MakeTrainerParts(const RunConfig& config, ThreadPool& pool) try {
  TrainerParts parts;
  parts.make_environment = [config](std::uint64_t index) {
    return MakeEnvironmentFor(config, index);
  };
  const EnvironmentSpec environment = SpecFor(config);
  const LearnerSpec learner = LearnerSpecFrom(config, environment);
  const auto replay = DeviceReplaySpecFrom(config, environment);
  if (ResolveDevice(config) == DeviceChoice::kCuda && replay) {
    parts.learner = MakeGpuLearner(learner);
    parts.device_replay = MakeDeviceReplay(*replay, *parts.learner);
  } else {
    parts.learner = MakeLearnerOn(ResolveDevice(config), learner, pool);
  }
  InitializeLearner(config, *parts.learner);
  AddEngine(config, environment, ThreadsOf(config), parts);
  return parts;
} catch (const std::bad_alloc&) {
  throw Error(ErrorKind::kResources,
              "the system gives no memory for this run (is there a limit, `ulimit -v`?): it " +
                  DescribePlan(PlanRun(config), {}) + "; lower replay.capacity_transitions");
}

ResourcePlan PlanRun(const RunConfig& config) {
  const EnvironmentSpec spec = SpecFor(config);
  const LearnerSpec learner = LearnerSpecFrom(config, spec);
  ResourcePlan plan = PlanResources(config, spec, learner, FramesPerStepOf(config));
  if (ResolveDevice(config) == DeviceChoice::kCuda) PlanGpu(config, spec, learner, plan);
  return plan;
}

AvailableResources ResourcesFor(const RunFolder& folder) {
  const MemoryInfo memory = ReadMemoryInfo();
  AvailableResources available{
      .memory = static_cast<std::uint64_t>(memory.available_bytes),
      .gpu = static_cast<std::uint64_t>(QueryGpu().free_bytes),
      .memory_source = memory.limit_bytes ? "to its control group" : "on this machine",
      .folder = folder.path().string()};
  std::error_code error;
  const std::filesystem::space_info space = std::filesystem::space(folder.path(), error);
  if (error) return available;
  available.disk = space.available;
  for (const auto& file : std::filesystem::directory_iterator(folder.checkpoints(), error)) {
    std::error_code gone;
    const std::uintmax_t bytes = file.file_size(gone);
    if (!gone) available.disk += bytes;
  }
  return available;
}

SavedRun OpenRun(const RunFolder& folder) {
  if (folder.State() == RunState::kNew) {
    throw Error(ErrorKind::kMissingData, "there is no run in " + folder.path().string());
  }
  SavedRun run{.config = ReadDumpedConfig(folder.config())};
  checkpoint::LoadResult loaded = checkpoint::CheckpointStore(folder.checkpoints()).Load();
  if (!loaded.checkpoint) {
    throw Error(ErrorKind::kMissingData,
                "the run in " + folder.path().string() + " has not saved anything yet");
  }
  run.checkpoint = std::move(*loaded.checkpoint);
  return run;
}

}  // namespace uper
