#include "uper/train/run/resource_plan.h"

#include <algorithm>
#include <cstdio>

#include "uper/base/error.h"
#include "uper/checkpoint/checkpoint_store.h"
#include "uper/train/run/make_store.h"

namespace uper {
namespace {

constexpr std::uint64_t kProgramBytes = std::uint64_t{24} << 20;  // measured: 15 to 25 MiB

// Context of the driver, kernels and graphs.
constexpr std::uint64_t kGpuProgramBytes = std::uint64_t{600} << 20;

std::uint64_t ParametersOf(const LearnerSpec& learner) {
  return ParameterLayout(learner.network).size();
}

// Parameters, target, two moments and gradient; activations of three forward passes and a backward
// pass; outputs of the head.
std::uint64_t LearnerBytes(const LearnerSpec& learner) {
  const NetworkSpec& network = learner.network;
  const ParameterLayout layout(network);
  std::uint64_t activations = network.observation_size();
  for (const LayerSpec& layer : layout.torso()) activations += layer.outputs();
  const std::uint64_t outputs = network.member_outputs();
  const bool categorical = learner.loss.head == HeadKind::kCategorical;
  const std::uint64_t sample = 4 * activations + (categorical ? 3 + network.actions : 3) * outputs;
  return sizeof(float) * (5 * layout.size() + learner.batch * sample);
}

// The configuration with a replay memory no larger than the transitions that the run will make.
RunConfig Filled(RunConfig config, int frames_per_step) {
  config.replay.capacity_transitions = std::min(
      config.replay.capacity_transitions, config.frames / frames_per_step + config.environments);
  return config;
}

// Transitions with records on disk: the memory of two saves ago, and the two intervals since then.
// An interval keeps only the transitions that were in memory at its end.
std::uint64_t TransitionsOnDisk(const RunConfig& filled, int frames_per_step) {
  const std::int64_t capacity = filled.replay.capacity_transitions;
  const std::int64_t interval = filled.checkpoint_every_frames / frames_per_step;
  return std::min(capacity + 2 * std::min(interval, capacity),
                  filled.frames / frames_per_step + filled.environments);
}

std::string Amount(std::uint64_t bytes) {
  char text[32];
  const auto number = static_cast<double>(bytes);
  if (bytes < std::uint64_t{1} << 30) {
    std::snprintf(text, sizeof(text), "%.1f MiB", number / (1 << 20));
  } else {
    std::snprintf(text, sizeof(text), "%.2f GiB", number / (1 << 30));
  }
  return text;
}

std::string MemoryText(const ResourcePlan& plan) {
  return Amount(plan.memory()) + " of memory (replay " + Amount(plan.replay) + ", learner " +
         Amount(plan.learner) + ", saving " + Amount(plan.saving) + ", program " +
         Amount(plan.program) + ")";
}

std::string GpuText(const ResourcePlan& plan) {
  return Amount(plan.gpu()) + " of the GPU's memory (replay " + Amount(plan.gpu_replay) +
         ", learner " + Amount(plan.gpu_learner) + ")";
}

std::string DiskText(const ResourcePlan& plan) {
  return "up to " + Amount(plan.disk()) + " of disk (records before compression " +
         Amount(plan.records) + ", 3 checkpoints of " + Amount(plan.checkpoint + plan.ends) + ")";
}

}  // namespace

ResourcePlan PlanResources(const RunConfig& config, const EnvironmentSpec& environment,
                           const LearnerSpec& learner, int frames_per_step) {
  const RunConfig filled = Filled(config, frames_per_step);
  const std::uint64_t on_disk = TransitionsOnDisk(filled, frames_per_step);
  const auto transitions = static_cast<std::uint64_t>(filled.replay.capacity_transitions);
  ResourcePlan plan;
  const TransitionStoreOptions store = StoreOptionsFrom(filled, environment);
  plan.replay = store.MemoryBytes();
  plan.records = on_disk * store.RecordBytes();
  if (store.stacks_frames()) {
    const std::uint64_t frames = on_disk * store.FrameStore().ActualFrameCapacity() / transitions;
    plan.records += frames * store.observation_bytes;
  }
  // Parameters, target and two moments; one priority per transition.
  plan.checkpoint = 4 * sizeof(float) * ParametersOf(learner) + transitions * sizeof(float);
  plan.learner = LearnerBytes(learner);
  const std::uint64_t segment =
      std::min(plan.records, checkpoint::CheckpointStoreOptions{}.segment_bytes);
  plan.ends = 2 * segment;
  // The numbers, the priorities once more, a segment that is being written (raw and compressed),
  // and a segment that is not complete yet.
  plan.saving = plan.checkpoint + transitions * sizeof(float) + 3 * segment;
  plan.program = kProgramBytes;
  return plan;
}

void PlanGpu(const RunConfig& config, const EnvironmentSpec& environment,
             const LearnerSpec& learner, ResourcePlan& plan) {
  const std::optional<DeviceReplaySpec> replay = DeviceReplaySpecFrom(config, environment);
  plan.gpu_replay = replay ? replay->DeviceBytes() : 0;
  plan.gpu_learner = kGpuProgramBytes + 2 * LearnerBytes(learner);  // parameters exist twice
}

std::string DescribePlan(const ResourcePlan& plan, const AvailableResources& available) {
  std::string text = "needs " + MemoryText(plan);
  if (available.memory > 0) {
    text += "; " + Amount(available.memory) + " are available " + available.memory_source;
  }
  if (plan.gpu() > 0) {
    text += "; " + GpuText(plan);
    if (available.gpu > 0) text += "; " + Amount(available.gpu) + " are free";
  }
  text += "; " + DiskText(plan);
  if (available.disk > 0) text += "; " + Amount(available.disk) + " are free";
  return text;
}

void CheckPlan(const ResourcePlan& plan, const AvailableResources& available) {
  if (available.memory > 0 && plan.memory() > available.memory) {
    throw Error(ErrorKind::kResources, "not enough memory: the run needs " + MemoryText(plan) +
                                           ", " + Amount(available.memory) + " are available " +
                                           available.memory_source +
                                           "; lower replay.capacity_transitions (now " +
                                           Amount(plan.replay) + ") or free memory");
  }
  if (available.gpu > 0 && plan.gpu() > available.gpu) {
    throw Error(ErrorKind::kResources,
                "not enough memory on the GPU: the run needs " + GpuText(plan) + ", " +
                    Amount(available.gpu) +
                    " are free; lower replay.capacity_transitions, end other programs on the GPU, "
                    "or use --device cpu");
  }
  if (available.disk > 0 && plan.disk() > available.disk) {
    throw Error(ErrorKind::kResources,
                "not enough disk: the run may need " + DiskText(plan) + ", " +
                    Amount(available.disk) + " are free in " + available.folder +
                    "; lower replay.capacity_transitions, free space, or use --out on another "
                    "disk");
  }
}

}  // namespace uper
