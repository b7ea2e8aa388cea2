#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "uper/replay/n_step_accumulator.h"
#include "uper/replay/replay_batch.h"
#include "uper/replay/transition_replay.h"
#include "uper/train/checkpoint_content.h"
#include "uper/train/checkpoint_reader.h"

namespace uper {

// One step of an environment as the memory stores it: the reward already clipped, the discount
// already multiplied with gamma.
struct ExperienceStep {
  int action = 0;
  StepOutcome outcome;
  bool noisy = false;  // noise on purpose touched the step (telemetry)
};

// From the steps of one environment to batches of transitions: what the agent sees, n-step
// accumulation and replay in one. The seam between games whose observations are stored whole and
// games whose frames are stacked. Not thread-safe.
class Experience {
 public:
  virtual ~Experience() = default;

  // The first observation of an episode, and every further one with the step that led to it.
  virtual void Start(std::span<const std::byte> observation) = 0;
  virtual void Step(const ExperienceStep& step, std::span<const std::byte> observation) = 0;
  // What the agent sees now.
  virtual std::span<const std::byte> current() const = 0;

  virtual const ReplayBuffer& buffer() const = 0;
  virtual void Sample(const WeightOptions& options, const BatchView& out) = 0;
  virtual UpdateCounts SetPriorities(std::span<const std::uint64_t> ids,
                                     std::span<const double> priorities) = 0;
  virtual bool IsNoisy(std::uint64_t id) const = 0;

  // Everything but the options, into the parts "replay" (tensors, document) and "transitions"
  // (records). What `content` refers to stays as it is until the next Step or SetPriorities.
  virtual void Save(CheckpointContent& content) const = 0;
  virtual void Restore(const LoadedCheckpoint& checkpoint) = 0;
};

struct RecordExperienceOptions {
  TransitionReplayOptions replay;
  std::size_t observation_bytes = 1;
  std::size_t n_steps = 1;
};

// Observations stored whole: MinAtar, vectors.
class RecordExperience final : public Experience {
 public:
  RecordExperience(const RecordExperienceOptions& options, std::uint64_t seed);

  void Start(std::span<const std::byte> observation) override;
  void Step(const ExperienceStep& step, std::span<const std::byte> observation) override;
  std::span<const std::byte> current() const override { return current_; }
  const ReplayBuffer& buffer() const override { return replay_.buffer(); }
  void Sample(const WeightOptions& options, const BatchView& out) override {
    replay_.Sample(options, out);
  }
  UpdateCounts SetPriorities(std::span<const std::uint64_t> ids,
                             std::span<const double> priorities) override {
    return replay_.SetPriorities(ids, priorities);
  }
  bool IsNoisy(std::uint64_t id) const override { return noisy_[replay_.buffer().SlotOf(id)] != 0; }
  void Save(CheckpointContent& content) const override;
  void Restore(const LoadedCheckpoint& checkpoint) override;

 private:
  using Pending = NStepAccumulator<RecordObservations::Observation>;

  std::vector<std::byte> EncodePending() const;
  void RestorePending(std::span<const std::byte> bytes);
  std::size_t record_bytes() const;
  void ReadRecords(std::uint64_t begin, std::uint64_t end, std::span<std::byte> out) const;

  RecordReplay replay_;
  Pending pending_;
  std::vector<std::uint8_t> pending_noisy_;  // of the pending steps
  std::vector<std::byte> current_;
  std::vector<std::uint8_t> noisy_;  // by slot
  // Kept for Save: tensors are views.
  mutable SelectorState saved_selector_;
  mutable std::vector<std::byte> saved_pending_;
};

}  // namespace uper
