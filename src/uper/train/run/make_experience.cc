#include "uper/train/run/make_experience.h"

namespace uper {
namespace {

TransitionReplayOptions ReplayOptionsFrom(const RunConfig& config) {
  const ReplayConfig& replay = config.replay;
  return {.buffer = {.capacity = static_cast<std::size_t>(replay.capacity_transitions),
                     .selector = replay.selector,
                     .selection = {.priority_exponent = replay.priority_exponent,
                                   .uniform_mix = replay.uniform_mix,
                                   .stratified = replay.stratified},
                     .largest_priority_decay = replay.largest_priority_decay},
          .masks = {.members = static_cast<std::size_t>(config.network.members),
                    .probability = config.agent.mask_probability}};
}

}  // namespace

RecordExperienceOptions RecordExperienceFrom(const RunConfig& config, const EnvironmentSpec& spec) {
  return {.replay = ReplayOptionsFrom(config),
          .observation_bytes = spec.observation_bytes(),
          .n_steps = static_cast<std::size_t>(config.agent.n_steps),
          .environments = static_cast<std::size_t>(config.environments)};
}

FrameExperienceOptions FrameExperienceFrom(const RunConfig& config, const EnvironmentSpec& spec) {
  return {.replay = ReplayOptionsFrom(config),
          .frame_bytes = spec.observation_bytes(),
          .stack_depth = static_cast<std::size_t>(spec.frame_stack),
          .frame_capacity = static_cast<std::size_t>(config.replay.capacity_frames),
          .n_steps = static_cast<std::size_t>(config.agent.n_steps),
          .environments = static_cast<std::size_t>(config.environments)};
}

std::unique_ptr<Experience> MakeExperience(const RunConfig& config, const EnvironmentSpec& spec,
                                           bool drawn_on_gpu) {
  const auto seed = static_cast<std::uint64_t>(config.seed);
  const auto with_selector = [&](auto options) {
    if (drawn_on_gpu) options.replay.buffer.selector = SelectorKind::kMirror;
    return options;
  };
  if (spec.frame_stack > 1) {
    return std::make_unique<FrameExperience>(with_selector(FrameExperienceFrom(config, spec)),
                                             seed);
  }
  return std::make_unique<RecordExperience>(with_selector(RecordExperienceFrom(config, spec)),
                                            seed);
}

}  // namespace uper
