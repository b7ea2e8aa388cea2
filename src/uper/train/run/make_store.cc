#include "uper/train/run/make_store.h"

namespace uper {

PriorityLimits PriorityLimitsFrom(const RunConfig& config) {
  return {.aleatoric_floor = config.agent.aleatoric_floor, .cap = config.agent.priority_cap};
}

TransitionStoreOptions StoreOptionsFrom(const RunConfig& config, const EnvironmentSpec& spec) {
  const ReplayConfig& replay = config.replay;
  return {.replay = {.buffer = {.capacity = static_cast<std::size_t>(replay.capacity_transitions),
                                .selector = replay.selector,
                                .selection = {.priority_exponent = replay.priority_exponent,
                                              .uniform_mix = replay.uniform_mix,
                                              .stratified = replay.stratified},
                                .largest_priority_decay = replay.largest_priority_decay},
                     .masks = {.members = static_cast<std::size_t>(config.network.members),
                               .probability = config.agent.mask_probability}},
          .observation_bytes = spec.observation_bytes(),
          .frame_stack = static_cast<std::size_t>(spec.frame_stack),
          .frame_capacity = static_cast<std::size_t>(replay.capacity_frames),
          .n_steps = static_cast<std::size_t>(config.agent.n_steps),
          .environments = static_cast<std::size_t>(config.environments)};
}

std::optional<DeviceReplaySpec> DeviceReplaySpecFrom(const RunConfig& config,
                                                     const EnvironmentSpec& environment) {
  const ReplayConfig& replay = config.replay;
  const bool uniform =
      replay.selector == SelectorKind::kUniform && config.agent.priority == PriorityRule::kUniform;
  if (!uniform && replay.selector != SelectorKind::kProportional) return std::nullopt;
  const TransitionStoreOptions store = StoreOptionsFrom(config, environment);
  const ReplayBufferOptions& buffer = store.replay.buffer;
  DeviceReplaySpec spec{.capacity = buffer.capacity,
                        .record_bytes = store.RecordBytes(),
                        .observation_bytes = store.observation_bytes * store.frame_stack,
                        .samples_on_device = !uniform,
                        .priority_exponent = buffer.selection.priority_exponent,
                        .uniform_mix = buffer.selection.uniform_mix,
                        .normalization = replay.weight_normalization,
                        .initial_priority = buffer.initial_priority,
                        .largest_priority_decay = buffer.largest_priority_decay,
                        .rule = config.agent.priority,
                        .limits = PriorityLimitsFrom(config)};
  if (store.stacks_frames()) {
    spec.stack_depth = environment.frame_stack;
    spec.frame_bytes = store.observation_bytes;
    spec.frame_capacity = store.FrameStore().ActualFrameCapacity();
  }
  return spec;
}

}  // namespace uper
