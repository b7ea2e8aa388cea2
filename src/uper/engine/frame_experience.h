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

struct FrameExperienceOptions {
  TransitionReplayOptions replay;
  std::size_t frame_bytes = std::size_t{84} * 84;
  std::size_t stack_depth = 4;
  // Frames in memory; 0: as FrameStoreOptions, and those that steps under way need.
  std::size_t frame_capacity = 0;
  std::size_t n_steps = 1;
  std::size_t environments = 1;

  FrameStoreOptions FrameStore() const;
};

// Observations that are stacks of frames, each frame stored once: Atari. What the agent sees is
// [depth, frame], oldest frame first and zeros behind while an episode is younger than the stack
// (replay/frame_stack.h).
class FrameExperience final : public Experience {
 public:
  FrameExperience(const FrameExperienceOptions& options, std::uint64_t seed);

  // An observation is one frame.
  void Start(std::size_t environment, std::span<const std::byte> frame) override;
  void Step(std::size_t environment, const ExperienceStep& step,
            std::span<const std::byte> frame) override;
  std::span<const std::byte> current() const override;
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
  RecordStream Frames() const override;
  void Save(CheckpointContent& content) const override;
  void Restore(const LoadedCheckpoint& checkpoint) override;

  // Throws Error(kInternal) with the reason if an invariant is broken. O(capacity).
  void CheckValid() const { replay_.CheckValid(); }
  // What one with these options will allocate in the end.
  static std::size_t MemoryBytes(const FrameExperienceOptions& options);
  // Of the record of a transition.
  static std::size_t RecordBytes(const FrameExperienceOptions& options);

 private:
  struct Player {
    FrameStack stack;  // what it sees now
    PendingSteps<FrameStack> pending;
    mutable bool shown = false;  // the stack is in current_
  };

  Player& PlayerOf(std::size_t environment);
  void PushFrame(std::size_t environment, std::span<const std::byte> frame);
  void ShowStack(std::size_t environment) const;
  std::size_t slots_bytes() const { return 2 * depth_ * sizeof(std::uint32_t); }
  std::size_t record_bytes() const;
  void ReadTransitions(std::uint64_t begin, std::uint64_t end, std::span<std::byte> out) const;
  void ReadFrames(std::uint64_t begin, std::uint64_t end, std::span<std::byte> out) const;
  void RestoreFrames(const LoadedCheckpoint& checkpoint, const FrameStoreState& state);
  void RestoreTransitions(const LoadedCheckpoint& checkpoint, FrameReplay::State& state);
  std::vector<std::byte> EncodePlayers() const;
  void RestorePlayers(std::span<const std::byte> bytes);
  FrameStack ReadStack(ByteReader& reader) const;

  std::size_t depth_;
  FrameReplay replay_;
  std::vector<Player> players_;  // [environment]
  // [environment, depth, frame]; copied when somebody looks.
  mutable std::vector<std::byte> current_;
  std::vector<std::uint8_t> noisy_;  // by slot
  // Kept for Save: tensors are views.
  mutable SelectorState saved_selector_;
  mutable std::vector<std::byte> saved_players_;
};

}  // namespace uper
