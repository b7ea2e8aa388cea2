#include "uper/train/run/gpu_memory.h"

#include "uper/train/run/make_experience.h"

namespace uper {
namespace {

void DescribeObservations(const RunConfig& config, const EnvironmentSpec& environment,
                          DeviceReplaySpec& spec) {
  if (environment.frame_stack > 1) {
    const FrameExperienceOptions options = FrameExperienceFrom(config, environment);
    spec.record_bytes = FrameExperience::RecordBytes(options);
    spec.stack_depth = environment.frame_stack;
    spec.frame_bytes = options.frame_bytes;
    spec.frame_capacity = options.FrameStore().ActualFrameCapacity();
    spec.observation_bytes = options.frame_bytes * options.stack_depth;
  } else {
    const RecordExperienceOptions options = RecordExperienceFrom(config, environment);
    spec.record_bytes = RecordExperience::RecordBytes(options);
    spec.observation_bytes = options.observation_bytes;
  }
}

}  // namespace

std::optional<DeviceReplaySpec> GpuReplaySpecFrom(const RunConfig& config,
                                                  const EnvironmentSpec& environment) {
  const ReplayConfig& replay = config.replay;
  const bool uniform =
      replay.selector == SelectorKind::kUniform && config.agent.priority == PriorityRule::kUniform;
  if (!uniform && replay.selector != SelectorKind::kProportional) return std::nullopt;
  DeviceReplaySpec spec{.capacity = static_cast<std::size_t>(replay.capacity_transitions),
                        .samples_on_device = !uniform,
                        .priority_exponent = replay.priority_exponent,
                        .uniform_mix = replay.uniform_mix,
                        .normalization = replay.weight_normalization,
                        .initial_priority = ReplayBufferOptions{}.initial_priority,
                        .largest_priority_decay = replay.largest_priority_decay,
                        .rule = config.agent.priority,
                        .limits = {.aleatoric_floor = config.agent.aleatoric_floor,
                                   .cap = config.agent.priority_cap}};
  DescribeObservations(config, environment, spec);
  return spec;
}

}  // namespace uper
