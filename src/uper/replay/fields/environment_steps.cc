#include "uper/replay/fields/environment_steps.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "uper/base/check.h"

namespace uper {

EnvironmentSteps::EnvironmentSteps(const EnvironmentStepsOptions& options)
    : options_(options), states_(options.environments, State(options.n_steps)) {
  UPER_CHECK(options.environments >= 1 && options.n_steps >= 1,
             "at least one environment and step");
  memory_.resize(options.environments * places() *
                 (options.observation_bytes + options.step_bytes));
  folded_.reserve(options.n_steps);
}

std::size_t EnvironmentSteps::Offset(std::size_t environment, Place place) const {
  return (environment * places() + place) * (options_.observation_bytes + options_.step_bytes);
}

void EnvironmentSteps::Check(std::size_t environment, bool last, bool has_final_observation,
                             Autoreset autoreset) const {
  const std::string name = "environment " + std::to_string(environment);
  if (!IsInEpisode(environment)) {
    if (autoreset == Autoreset::kNextStep) return;
    throw Error(ErrorKind::kUsage,
                name + " has no episode: call reset() with its first observation");
  }
  if (last && autoreset == Autoreset::kSameStep && !has_final_observation) {
    throw Error(ErrorKind::kUsage,
                name + " has ended: give final_obs, the last observation of the episode");
  }
}

void EnvironmentSteps::Start(std::size_t environment, const std::byte* observation) {
  State& state = states_[environment];
  state.newest = 0;
  state.in_episode = true;
  std::memcpy(At(environment, 0), observation, options_.observation_bytes);
  state.fold.Start(0);
}

std::span<const FoldedTransition> EnvironmentSteps::Add(std::size_t environment,
                                                        const EnvironmentStep& step,
                                                        Autoreset autoreset) {
  Check(environment, step.last(), step.final_observation != nullptr, autoreset);
  State& state = states_[environment];
  if (!state.in_episode) {
    Start(environment, step.observation);  // this step was a reset
    return {};
  }
  const bool apart = step.last() && autoreset == Autoreset::kSameStep;
  const Place before = state.newest;
  const Place after = (before + 1) % static_cast<Place>(places());
  std::memcpy(At(environment, before) + options_.observation_bytes, step.step, options_.step_bytes);
  std::memcpy(At(environment, after), apart ? step.final_observation : step.observation,
              options_.observation_bytes);
  const auto done = state.fold.Step(static_cast<std::int32_t>(before),
                                    {.reward = step.reward,
                                     .discount = options_.discount,
                                     .terminated = step.terminated,
                                     .truncated = step.truncated},
                                    after);
  state.newest = after;
  state.in_episode = !step.last();
  const auto folded = Finish(environment, done);
  if (apart) {
    // The place after the newest is not part of any transition under way.
    const Place first = (after + 1) % static_cast<Place>(places());
    std::memcpy(At(environment, first), step.observation, options_.observation_bytes);
    state.fold.Start(first);
    state.newest = first;
    state.in_episode = true;
  }
  return folded;
}

std::span<const FoldedTransition> EnvironmentSteps::Finish(
    std::size_t environment, std::span<const Transition<Place>> done) {
  folded_.clear();
  for (const Transition<Place>& one : done) {
    const std::byte* from = At(environment, one.s_tm1);
    folded_.push_back({.s_tm1 = from,
                       .step = from + options_.observation_bytes,
                       .s_t = At(environment, one.s_t),
                       .reward = static_cast<float>(one.r_t),
                       .discount = static_cast<float>(one.discount_t)});
  }
  return folded_;
}

void EnvironmentSteps::Save(ByteWriter& writer) const {
  for (const State& state : states_) {
    const auto& fold = state.fold.GetState();
    writer.Write(state.newest);
    writer.Write(state.in_episode);
    writer.Write(std::uint64_t{fold.observations.size()});
    for (const Place place : fold.observations) writer.Write(place);
    for (const double reward : fold.rewards) writer.Write(reward);
    for (const double discount : fold.discounts) writer.Write(discount);
  }
  writer.WriteBlock(memory_);
}

void EnvironmentSteps::Load(ByteReader& reader) {
  const auto last_place = static_cast<Place>(places() - 1);
  for (State& state : states_) {
    state.newest = reader.ReadInRange<Place>(0, last_place);
    state.in_episode = reader.Read<bool>();
    const auto count = reader.ReadInRange<std::uint64_t>(0, options_.n_steps);
    NStepAccumulator<Place>::State fold;
    for (std::uint64_t i = 0; i < count; ++i) {
      fold.observations.push_back(reader.ReadInRange<Place>(0, last_place));
    }
    const std::uint64_t steps = count > 0 ? count - 1 : 0;
    for (std::uint64_t i = 0; i < steps; ++i) {
      fold.actions.push_back(static_cast<std::int32_t>(fold.observations[i]));
      fold.rewards.push_back(reader.Read<double>());
    }
    for (std::uint64_t i = 0; i < steps; ++i) fold.discounts.push_back(reader.Read<double>());
    fold.noisy.assign(steps, 0);
    state.fold.SetState(std::move(fold));
  }
  const std::span<const std::byte> memory = reader.ReadBlock();
  if (memory.size() != memory_.size()) {
    throw Error(ErrorKind::kCorrupt, "pending steps are of other environments");
  }
  std::copy(memory.begin(), memory.end(), memory_.begin());
}

}  // namespace uper
