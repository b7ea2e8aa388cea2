#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "uper/engine/transition_builder.h"
#include "uper/engine/transition_store.h"
#include "uper/replay/transition_replay.h"

namespace uper {

struct RecordExperienceOptions {
  TransitionReplayOptions replay;
  std::size_t observation_bytes = 1;
  std::size_t n_steps = 1;
  std::size_t environments = 1;
};

// Observations stored whole: MinAtar, vectors.
class RecordExperience final : public Experience {
 public:
  RecordExperience(const RecordExperienceOptions& options, std::uint64_t seed);

  void Start(std::size_t environment, std::span<const std::byte> observation) override;
  void Step(std::size_t environment, const ExperienceStep& step,
            std::span<const std::byte> observation) override;
  std::span<const std::byte> current() const override { return current_; }
  void Slots(std::size_t environment, const std::optional<NextFrame>& next,
             std::span<std::uint32_t> slots) const override;
  const ReplayBuffer& buffer() const override { return replay_.buffer(); }
  ReplayBuffer& mutable_buffer() override { return replay_.mutable_buffer(); }
  void Sample(const WeightOptions& options, const BatchView& out) override {
    replay_.Sample(options, out);
  }
  UpdateCounts SetPriorities(std::span<const std::uint64_t> ids,
                             std::span<const double> priorities) override {
    return replay_.SetPriorities(ids, priorities);
  }
  bool IsNoisy(std::uint64_t id) const override { return noisy_[replay_.buffer().SlotOf(id)] != 0; }
  RecordStream Transitions() const override;
  RecordStream Frames() const override { return {}; }
  void Save(CheckpointContent& content) const override;
  void Restore(const LoadedCheckpoint& checkpoint) override;

  // What one with these options will allocate in the end.
  static std::size_t MemoryBytes(const RecordExperienceOptions& options);
  // Of the record of a transition.
  static std::size_t RecordBytes(const RecordExperienceOptions& options);

 private:
  using Observation = WholeObservations::Observation;

  std::span<std::byte> SeenBy(std::size_t environment);
  std::vector<std::byte> EncodePending() const;
  void RestorePending(std::span<const std::byte> bytes);
  std::size_t record_bytes() const;
  void ReadRecords(std::uint64_t begin, std::uint64_t end, std::span<std::byte> out) const;

  std::size_t observation_bytes_;
  WholeReplay replay_;
  std::vector<PendingSteps<Observation>> pending_;  // [environment]
  std::vector<std::byte> current_;
  std::vector<std::uint8_t> noisy_;  // by slot
  // Kept for Save: tensors are views.
  mutable SelectorState saved_selector_;
  mutable std::vector<std::byte> saved_pending_;
};

}  // namespace uper
