#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "uper/checkpoint/checkpoint_content.h"
#include "uper/checkpoint/checkpoint_reader.h"
#include "uper/replay/n_step_accumulator.h"
#include "uper/replay/replay_batch.h"
#include "uper/replay/replay_buffer.h"
#include "uper/replay/transition_replay.h"

namespace uper {

// One step of an environment as the store keeps it: the reward already clipped, the discount
// already multiplied by gamma.
struct StoredStep {
  int action = 0;
  StepOutcome outcome;
};

// A frame that an environment has written but that is not stored yet.
struct NextFrame {
  std::uint64_t id = 0;
  bool starts_episode = false;
};

struct TransitionStoreOptions {
  TransitionReplayOptions replay;
  std::size_t observation_bytes = 1;  // of what an environment writes; of one frame if stacked
  std::size_t frame_stack = 1;        // 1: observations are stored whole
  // Stacked frames in memory; 0: the default of FrameStoreOptions, plus the frames that pending
  // steps need.
  std::size_t frame_capacity = 0;
  std::size_t n_steps = 1;
  std::size_t environments = 1;

  bool stacks_frames() const { return frame_stack > 1; }
  FrameStoreOptions FrameStore() const;
  std::size_t RecordBytes() const;  // of the record of a transition (transition_record.h)
  std::size_t MemoryBytes() const;  // that a full store has allocated
};

// Turns the steps of environments into batches of transitions. It makes the agents' observations,
// computes n-step returns for each environment separately, and has the replay memory. Observations
// are stored whole, or as stacks of frames. A frame is stored once; an agent then sees [depth,
// frame] in the order of core/frame_stack.h. Adding a step allocates nothing. Not thread-safe.
class TransitionStore {
 public:
  virtual ~TransitionStore() = default;

  // Start() takes the first observation of an episode. Add() takes each later observation with the
  // step that led to it. If frames are stacked an observation is one frame.
  virtual void Start(std::size_t environment, std::span<const std::byte> observation) = 0;
  virtual void Add(std::size_t environment, const StoredStep& step,
                   std::span<const std::byte> observation) = 0;

  // The agents' observations now, [environment, observation]; valid until the next Start or Add.
  virtual std::span<const std::byte> current() const = 0;
  // An agent's observation as slots of Frames(), [depth] (FrameStore::kZeroSlot: zeros). With
  // `next`, the observation after that frame is stored. REQUIRES: frames are stacked.
  virtual void StackSlots(std::size_t environment, const std::optional<NextFrame>& next,
                          std::span<std::uint32_t> slots) const = 0;

  virtual const ReplayBuffer& buffer() const = 0;
  virtual ReplayBuffer& mutable_buffer() = 0;
  virtual void Sample(const WeightOptions& options, const BatchView& out) = 0;
  // Whether injected noise touched a transition. REQUIRES: buffer().Contains(id).
  virtual bool IsNoisy(std::uint64_t id) const = 0;

  // The records by id, to be read before the next Start or Add. Frames() is empty if observations
  // are stored whole.
  virtual checkpoint::RecordStream Transitions() const = 0;
  virtual checkpoint::RecordStream Frames() const = 0;
  // The record streams by name: "transitions" and, if there are frames, "frames".
  std::map<std::string, checkpoint::RecordStream> Streams() const;

  // Everything except for the options: the part "replay" (tensors, document) and Streams(). What
  // `content` refers to stays as it is until the next Start, Add or SetPriorities.
  virtual void Save(checkpoint::CheckpointContent& content) const = 0;
  // Throws Error(kCorrupt) if the checkpoint is of another store. This store must then not be used.
  virtual void Restore(const checkpoint::LoadedCheckpoint& checkpoint) = 0;
  // Throws Error(kInternal) with the reason if an invariant is broken. O(capacity).
  virtual void CheckValid() const = 0;
};

std::unique_ptr<TransitionStore> MakeTransitionStore(const TransitionStoreOptions& options,
                                                     std::uint64_t seed);

}  // namespace uper
