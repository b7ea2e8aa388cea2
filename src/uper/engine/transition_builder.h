#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "uper/base/files/byte_stream.h"
#include "uper/engine/transition_store.h"
#include "uper/replay/n_step_accumulator.h"

namespace uper {

// The steps of one environment on their way to n-step transitions, with what the memory wants to
// know of them beside: a transition counts as noisy when any of its steps was. Not thread-safe.
template <typename Observation>
class PendingSteps {
 public:
  explicit PendingSteps(std::size_t n_steps) : steps_(n_steps) {}

  void Start(Observation s_0) {
    steps_.Start(std::move(s_0));
    noisy_.clear();
  }

  // Calls add(transition, noisy) for every transition that is now complete, oldest first.
  template <typename Add>
  void Step(const ExperienceStep& step, Observation s_t, Add&& add) {
    noisy_.push_back(step.noisy ? 1 : 0);
    for (const auto& transition : steps_.Step(step.action, step.outcome, std::move(s_t))) {
      add(transition, std::find(noisy_.begin(), noisy_.end(), 1) != noisy_.end());
      noisy_.erase(noisy_.begin());
    }
  }

  // write(observation) appends an observation to the same writer; read() takes it from the reader.
  template <typename Write>
  void Save(ByteWriter& writer, Write&& write) const {
    const State state = steps_.GetState();
    writer.Write<std::uint64_t>(state.observations.size());
    for (const Observation& observation : state.observations) write(observation);
    writer.Write<std::uint64_t>(state.actions.size());
    for (std::size_t i = 0; i < state.actions.size(); ++i) {
      writer.Write(state.actions[i]);
      writer.Write(state.rewards[i]);
      writer.Write(state.discounts[i]);
      writer.Write(noisy_[i]);
    }
  }
  // Throws Error(kCorrupt) if that is not what Save wrote.
  template <typename Read>
  void Restore(ByteReader& reader, Read&& read) {
    State state;
    const auto observations = reader.ReadInRange<std::uint64_t>(0, kMaxPending);
    for (std::uint64_t i = 0; i < observations; ++i) state.observations.push_back(read());
    const auto steps = reader.ReadInRange<std::uint64_t>(0, kMaxPending);
    noisy_.clear();
    for (std::uint64_t i = 0; i < steps; ++i) {
      state.actions.push_back(reader.Read<std::int32_t>());
      state.rewards.push_back(reader.Read<double>());
      state.discounts.push_back(reader.Read<double>());
      noisy_.push_back(reader.Read<std::uint8_t>());
    }
    steps_.SetState(std::move(state));
  }

 private:
  using State = typename NStepAccumulator<Observation>::State;
  static constexpr std::uint64_t kMaxPending = 1'000'000;

  NStepAccumulator<Observation> steps_;
  std::vector<std::uint8_t> noisy_;  // of the pending steps
};

}  // namespace uper
