#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "uper/replay/fields/environment_steps.h"
#include "uper/replay/fields/field_replay.h"

namespace uper {

// The meaning of the fields for StepReplay; each is an index into FieldReplayOptions::field_bytes.
struct StepFields {
  std::vector<std::size_t> observations;  // none if frames are stored
  std::vector<std::size_t> next_observations;
  std::vector<std::size_t> steps;  // the action, and what else belongs to a step
  std::size_t reward = 0;          // of 4 or 8 bytes: float or double
  std::size_t discount = 0;
};

struct StepReplayOptions {
  FieldReplayOptions replay;
  StepFields fields;
  std::size_t environments = 1;
  std::size_t n_steps = 1;
  double discount = 0.99;
};

// One step of some environments, in the caller's memory: each array has one row per environment.
struct StepBatch {
  std::span<const std::size_t> environments;
  std::span<const std::byte* const> steps;  // by StepFields::steps
  const double* rewards = nullptr;
  const std::uint8_t* terminated = nullptr;
  const std::uint8_t* truncated = nullptr;
  std::span<const std::byte* const> observations;  // by StepFields::observations, or the stacks
  std::span<const std::byte* const> final_observations;  // empty: none
  Autoreset autoreset = Autoreset::kNextStep;
};

struct AddedTransitions {
  std::uint64_t first_id = 0;
  std::size_t count = 0;
};

// A FieldReplay that is filled by the steps of environments. With frames an observation is a stack
// [depth, frame]: a frame that is already stored is found by its content, so it is stored once
// whatever the rules are by which the caller stacks. Not thread-safe.
class StepReplay {
 public:
  StepReplay(const StepReplayOptions& options, std::uint64_t seed);

  FieldReplay& replay() { return replay_; }
  const FieldReplay& replay() const { return replay_; }
  std::size_t environments() const { return options_.environments; }

  // Begins an episode in each environment. REQUIRES: environments < options.environments.
  void Reset(std::span<const std::size_t> environments,
             std::span<const std::byte* const> observations);
  // Adds the steps and the transitions that they complete. Throws Error(kUsage) and changes nothing
  // if an environment has no episode or lacks a final observation.
  AddedTransitions Step(const StepBatch& batch);

  void Save(StateWriter& out) const;
  // Throws Error(kCorrupt) if the state does not fit; the memory is then not to be used further.
  void Load(StateReader& in);

 private:
  void CheckSteps(const StepBatch& batch) const;
  const std::byte* Observation(std::size_t environment, std::size_t row,
                               std::span<const std::byte* const> arrays,
                               std::vector<std::byte>& scratch);
  void FindFrames(std::size_t environment, const std::byte* stack, std::vector<std::byte>& ids);
  std::uint64_t FindFrame(const std::byte* pixels, std::span<const std::uint64_t> candidates);
  const std::byte* StepOf(const StepBatch& batch, std::size_t row);
  void AddTransition(const FoldedTransition& transition);

  StepReplayOptions options_;
  FieldReplay replay_;
  EnvironmentSteps steps_;

  // Reused between calls.
  std::vector<std::byte> observation_, final_observation_, step_;
  std::vector<const std::byte*> pointers_;  // [field]
};

}  // namespace uper
