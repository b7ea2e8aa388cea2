#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "uper/core/frame_stack.h"
#include "uper/replay/ring.h"

namespace uper {

struct FrameStoreOptions {
  std::size_t capacity = 1'000'000;                // transitions
  std::size_t frame_bytes = std::size_t{84} * 84;  // per frame
  std::size_t stack_depth = 4;                     // frames in an observation, 1..8
  // Frames in memory; 0 gives capacity + capacity / 64 + 1024. An environment adds one frame per
  // step and one more per episode, so the default suits episodes of at least 64 steps. With fewer
  // frames the oldest transitions leave earlier.
  std::size_t frame_capacity = 0;

  std::size_t ActualFrameCapacity() const;
};

struct FrameStoreState {
  std::uint64_t next_frame = 0;
  std::uint64_t first_valid_id = 0;
  std::uint64_t next_id = 0;
  std::uint64_t first_frame = 0;      // of `frames`
  std::vector<std::uint8_t> frames;   // [first_frame, next_frame)
  bool already_loaded = false;        // RestoreFrames() loaded them; `frames` is empty
  std::uint64_t first_id = 0;         // of `stacks`
  std::vector<std::uint32_t> stacks;  // slots of the frames of [first_id, next_id)
};

// Stacked uint8 frames; each frame is stored once. Frames get ids from 0 and live in a ring. Every
// transition names the frames of its two stacks, so stacks are right across episode starts,
// truncations, interleaved environments and the end of the ring. Before a frame is overwritten, all
// transitions up to the newest one that uses it become invalid (first_valid_id), so no stack ever
// has a wrong frame.
//
// Frames and stacks never change once written: ranges of ids can be saved as immutable segments.
// Memory: frame_bytes + 8 per frame and 8 * stack_depth per transition; resident as it is filled.
// O(bytes copied). Not thread-safe.
class FrameStore {
 public:
  using Observation = FrameStack;
  using State = FrameStoreState;
  static constexpr std::uint32_t kZeroSlot = 0xFFFFFFFFU;  // of kZeroFrame

  explicit FrameStore(const FrameStoreOptions& options);

  std::size_t capacity() const { return options_.capacity; }
  std::size_t frame_capacity() const { return last_user_.size(); }
  std::size_t frame_bytes() const { return options_.frame_bytes; }
  std::size_t observation_bytes() const { return options_.frame_bytes * options_.stack_depth; }
  std::uint64_t next_frame() const { return next_frame_; }
  std::uint64_t first_frame() const;
  // The slot where a frame is stored, now or later; kZeroSlot for kZeroFrame.
  std::uint32_t SlotOf(std::uint64_t frame) const;
  // Transitions with a smaller id can no longer be gathered.
  std::uint64_t first_valid_id() const { return first_valid_id_; }

  // Stores a frame and returns its id. May raise first_valid_id(). REQUIRES: frame_bytes() bytes.
  std::uint64_t AddFrame(std::span<const std::uint8_t> pixels);

  // Stores the stacks of transition `id`; ids must come in order, without gaps. Throws
  // Error(kUsage) and changes nothing if a frame was overwritten: then frame_capacity is too small
  // for the number of environments.
  void Put(std::uint64_t id, const FrameStack& s_tm1, const FrameStack& s_t);

  // Copies both stacks as [depth, frame_bytes], with zeros for padding. Throws Error(kInternal)
  // unless first_valid_id() <= id < next. REQUIRES: both outputs have observation_bytes().
  void Gather(std::uint64_t id, std::span<std::byte> s_tm1, std::span<std::byte> s_t) const;

  // For saving in segments: the pixels of a frame with first_frame() <= frame < next_frame(), and
  // the slots (SlotOf) of a stored transition's frames, [2, depth].
  std::span<const std::uint8_t> Frame(std::uint64_t frame) const;
  std::span<const std::uint32_t> StackSlots(std::uint64_t id) const;

  // The state with all frames and the stacks of the ids in [first, next).
  State GetState(std::uint64_t first, std::uint64_t next) const;
  // Restores frames first, first + 1, ... without a second copy of all. Call it piece by piece for
  // all frames, then SetState() with a state that is `already_loaded`. REQUIRES: whole frames.
  void RestoreFrames(std::uint64_t first, std::span<const std::uint8_t> pixels);
  // Throws Error(kCorrupt) and changes nothing if the state does not fit.
  void SetState(const State& state, std::uint64_t first, std::uint64_t next);
  // Throws Error(kInternal) with the reason if an invariant is broken. O(capacity).
  void CheckValid() const;

  // The bytes that a store with these options will allocate.
  static std::size_t MemoryBytes(const FrameStoreOptions& options);

 private:
  std::size_t stacks_width() const { return 2 * options_.stack_depth; }
  std::uint32_t* StacksOf(std::uint64_t id) const;
  void CheckFrames(const FrameStack& stack) const;
  void CopyStack(std::span<const std::uint32_t> slots, std::span<std::byte> out) const;
  Ring frame_ring() const { return {frame_capacity()}; }
  std::uint8_t* FrameAt(std::size_t slot) const;
  void CheckState(const State& state, std::uint64_t first, std::uint64_t next) const;

  FrameStoreOptions options_;
  std::unique_ptr<std::uint8_t[]> frames_;   // [frame_capacity, frame_bytes]
  std::vector<std::uint64_t> last_user_;     // by frame slot: 1 + id of its newest user, or 0
  std::unique_ptr<std::uint32_t[]> stacks_;  // [capacity, 2, depth] frame slots, or kZeroSlot
  std::uint64_t next_frame_ = 0;
  std::uint64_t next_id_ = 0;
  std::uint64_t first_valid_id_ = 0;
};

}  // namespace uper
