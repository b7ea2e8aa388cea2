#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "uper/base/files/byte_stream.h"
#include "uper/replay/n_step_accumulator.h"

namespace uper {

// How a group of environments begins the episode after an end.
enum class Autoreset {
  kNextStep,  // the next step ignores its action and returns the first observation, with reward 0
  kSameStep,  // the same step returns the first observation; the last one comes apart
  kDisabled,  // the caller resets
};

struct EnvironmentStepsOptions {
  std::size_t environments = 1;
  std::size_t n_steps = 1;
  double discount = 0.99;             // of one step
  std::size_t observation_bytes = 1;  // of one environment
  std::size_t step_bytes = 1;         // of the action and whatever else belongs to a step
};

// A step of one environment, in the caller's memory.
struct EnvironmentStep {
  const std::byte* step = nullptr;  // [step_bytes]
  double reward = 0;
  bool terminated = false;
  bool truncated = false;
  const std::byte* observation = nullptr;        // [observation_bytes]
  const std::byte* final_observation = nullptr;  // kSameStep: of the episode that ended

  bool last() const { return terminated || truncated; }
};

// A transition of n or, at an episode's end, fewer steps.
struct FoldedTransition {
  const std::byte* s_tm1 = nullptr;  // [observation_bytes]
  const std::byte* step = nullptr;   // [step_bytes], of its first step
  const std::byte* s_t = nullptr;
  float reward = 0;
  float discount = 0;  // 0 after a termination; a truncation bootstraps
};

// Turns the steps of several environments into n-step transitions. Each environment is folded by
// itself, and no transition reaches across a reset. Observations are bytes of any meaning. Every
// step of an episode starts exactly one transition. Adding a step allocates nothing. Not
// thread-safe.
class EnvironmentSteps {
 public:
  explicit EnvironmentSteps(const EnvironmentStepsOptions& options);

  const EnvironmentStepsOptions& options() const { return options_; }
  // Begins an episode. Drops the steps of an episode that has not ended.
  void Start(std::size_t environment, const std::byte* observation);
  bool IsInEpisode(std::size_t environment) const { return states_[environment].in_episode; }
  // The newest observation. REQUIRES: IsInEpisode(environment).
  const std::byte* Current(std::size_t environment) const {
    return At(environment, states_[environment].newest);
  }

  // Throws Error(kUsage) if the environment has no episode (kNextStep: a step begins one), or if it
  // needs a final observation that is not there.
  void Check(std::size_t environment, bool last, bool has_final_observation,
             Autoreset autoreset) const;

  // Adds a step and returns the transitions that it completes, oldest first, valid until the next
  // call. Throws what Check() throws, and has then changed nothing.
  std::span<const FoldedTransition> Add(std::size_t environment, const EnvironmentStep& step,
                                        Autoreset autoreset);

  void Save(ByteWriter& writer) const;
  // Throws Error(kCorrupt) if the state does not fit; the object is then not to be used further.
  void Load(ByteReader& reader);

 private:
  // A place holds an observation and the step that was taken in it.
  using Place = std::uint32_t;
  struct State {
    explicit State(std::size_t n_steps) : fold(n_steps) {}

    NStepAccumulator<Place> fold;
    Place newest = 0;  // of the current observation
    bool in_episode = false;
  };

  std::size_t places() const { return options_.n_steps + 2; }
  std::size_t Offset(std::size_t environment, Place place) const;
  const std::byte* At(std::size_t environment, Place place) const {
    return memory_.data() + Offset(environment, place);
  }
  std::byte* At(std::size_t environment, Place place) {
    return memory_.data() + Offset(environment, place);
  }
  std::span<const FoldedTransition> Finish(std::size_t environment,
                                           std::span<const Transition<Place>> done);

  EnvironmentStepsOptions options_;
  std::vector<State> states_;      // [environment]
  std::vector<std::byte> memory_;  // [environment, place, observation and step]
  std::vector<FoldedTransition> folded_;
};

}  // namespace uper
