#include "uper/replay/storage/frame_store.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "uper/base/check.h"

namespace uper {

std::size_t FrameStoreOptions::ActualFrameCapacity() const {
  return frame_capacity > 0 ? frame_capacity : capacity + capacity / 64 + 1024;
}

FrameStore::FrameStore(const FrameStoreOptions& options) : options_(options) {
  UPER_CHECK(options.capacity >= 1 && options.frame_bytes >= 1, "a frame store needs frames");
  UPER_CHECK(options.stack_depth >= 1 && options.stack_depth <= FrameStack::kMaxDepth,
             "a stack of 1 to 8 frames");
  const std::size_t frames = options.ActualFrameCapacity();
  UPER_CHECK(frames < kZeroSlot, "frame slots are 32-bit numbers");
  frames_ = std::make_unique_for_overwrite<std::uint8_t[]>(frames * options.frame_bytes);
  last_user_.assign(frames, 0);
  stacks_ = std::make_unique_for_overwrite<std::uint32_t[]>(options.capacity * stacks_width());
}

std::size_t FrameStore::MemoryBytes(const FrameStoreOptions& options) {
  return options.ActualFrameCapacity() * (options.frame_bytes + sizeof(std::uint64_t)) +
         options.capacity * 2 * options.stack_depth * sizeof(std::uint32_t);
}

std::uint64_t FrameStore::first_frame() const {
  return next_frame_ - std::min<std::uint64_t>(next_frame_, frame_capacity());
}

std::uint32_t FrameStore::SlotOf(std::uint64_t frame) const {
  if (frame == kZeroFrame) return kZeroSlot;
  return static_cast<std::uint32_t>(frame_ring().SlotOf(frame));
}

std::uint8_t* FrameStore::FrameAt(std::size_t slot) const {
  return frames_.get() + slot * options_.frame_bytes;
}

std::uint32_t* FrameStore::StacksOf(std::uint64_t id) const {
  return stacks_.get() + Ring{capacity()}.SlotOf(id) * stacks_width();
}

std::span<const std::uint8_t> FrameStore::Frame(std::uint64_t frame) const {
  UPER_CHECK(frame >= first_frame() && frame < next_frame_, "a frame that is not stored");
  return {FrameAt(frame_ring().SlotOf(frame)), options_.frame_bytes};
}

std::span<const std::uint32_t> FrameStore::StackSlots(std::uint64_t id) const {
  UPER_CHECK(id >= first_valid_id_ && id < next_id_, "a transition that is not stored any more");
  return {StacksOf(id), stacks_width()};
}

std::uint64_t FrameStore::AddFrame(std::span<const std::uint8_t> pixels) {
  UPER_CHECK(pixels.size() == options_.frame_bytes, "a frame of the wrong size");
  const std::size_t slot = frame_ring().SlotOf(next_frame_);
  first_valid_id_ = std::max(first_valid_id_, last_user_[slot]);
  last_user_[slot] = 0;
  std::memcpy(FrameAt(slot), pixels.data(), pixels.size());
  return next_frame_++;
}

void FrameStore::CheckFrames(const FrameStack& stack) const {
  UPER_CHECK(stack.frames().size() == options_.stack_depth, "a stack of the wrong depth");
  for (const std::uint64_t frame : stack.frames()) {
    if (frame == kZeroFrame) continue;
    UPER_CHECK(frame < next_frame_, "a stack names a frame that was never added");
    if (frame < first_frame()) {
      throw Error(ErrorKind::kUsage,
                  "a frame was overwritten before its transition was stored: frame_capacity " +
                      std::to_string(frame_capacity()) +
                      " is too small for this many environments and steps, raise it");
    }
  }
}

void FrameStore::Put(std::uint64_t id, const FrameStack& s_tm1, const FrameStack& s_t) {
  UPER_CHECK(id == next_id_, "transitions must come in order of their ids");
  CheckFrames(s_tm1);
  CheckFrames(s_t);
  std::uint32_t* slots = StacksOf(id);
  for (const FrameStack* stack : {&s_tm1, &s_t}) {
    for (const std::uint64_t frame : stack->frames()) {
      const std::uint32_t slot = SlotOf(frame);
      if (slot != kZeroSlot) last_user_[slot] = id + 1;
      *slots++ = slot;
    }
  }
  ++next_id_;
  if (next_id_ > capacity()) first_valid_id_ = std::max(first_valid_id_, next_id_ - capacity());
}

void FrameStore::CopyStack(std::span<const std::uint32_t> slots, std::span<std::byte> out) const {
  for (std::size_t i = 0; i < slots.size(); ++i) {
    std::byte* to = out.data() + i * options_.frame_bytes;
    if (slots[i] == kZeroSlot) {
      std::memset(to, 0, options_.frame_bytes);
    } else {
      std::memcpy(to, FrameAt(slots[i]), options_.frame_bytes);
    }
  }
}

void FrameStore::Gather(std::uint64_t id, std::span<std::byte> s_tm1,
                        std::span<std::byte> s_t) const {
  const std::span<const std::uint32_t> slots = StackSlots(id);
  UPER_CHECK(s_tm1.size() == observation_bytes() && s_t.size() == observation_bytes(),
             "memory of the wrong size");
  CopyStack(slots.first(options_.stack_depth), s_tm1);
  CopyStack(slots.last(options_.stack_depth), s_t);
}

FrameStore::State FrameStore::GetState(std::uint64_t first, std::uint64_t next) const {
  UPER_CHECK(first >= first_valid_id_ && first <= next && next == next_id_,
             "only transitions that are stored can be saved");
  State state{.next_frame = next_frame_,
              .first_valid_id = first_valid_id_,
              .next_id = next_id_,
              .first_frame = first_frame(),
              .frames = {},
              .first_id = first,
              .stacks = {}};
  state.frames.reserve((next_frame_ - first_frame()) * options_.frame_bytes);
  for (std::uint64_t frame = first_frame(); frame < next_frame_; ++frame) {
    const std::span<const std::uint8_t> pixels = Frame(frame);
    state.frames.insert(state.frames.end(), pixels.begin(), pixels.end());
  }
  state.stacks.reserve((next - first) * stacks_width());
  for (std::uint64_t id = first; id < next; ++id) {
    const std::span<const std::uint32_t> slots = StackSlots(id);
    state.stacks.insert(state.stacks.end(), slots.begin(), slots.end());
  }
  return state;
}

void FrameStore::CheckState(const State& state, std::uint64_t first, std::uint64_t next) const {
  const std::uint64_t frames = state.next_frame - state.first_frame;
  const std::uint64_t expected = std::min<std::uint64_t>(state.next_frame, frame_capacity());
  const bool fits =
      state.first_id == first && state.next_id == next && first <= next &&
      next - first <= capacity() && state.first_valid_id <= first && frames == expected &&
      state.frames.size() == (state.already_loaded ? 0 : frames * options_.frame_bytes) &&
      state.stacks.size() == (next - first) * stacks_width() &&
      std::all_of(state.stacks.begin(), state.stacks.end(),
                  [&](std::uint32_t slot) { return slot == kZeroSlot || slot < frames; });
  if (!fits) throw Error(ErrorKind::kCorrupt, "stored frames do not match the replay buffer");
}

void FrameStore::RestoreFrames(std::uint64_t first, std::span<const std::uint8_t> pixels) {
  UPER_CHECK(pixels.size() % options_.frame_bytes == 0, "frames come whole");
  for (; !pixels.empty(); pixels = pixels.subspan(options_.frame_bytes)) {
    std::memcpy(FrameAt(frame_ring().SlotOf(first++)), pixels.data(), options_.frame_bytes);
  }
}

void FrameStore::SetState(const State& state, std::uint64_t first, std::uint64_t next) {
  CheckState(state, first, next);
  next_frame_ = state.next_frame;
  next_id_ = state.next_id;
  first_valid_id_ = state.first_valid_id;
  RestoreFrames(state.first_frame, state.frames);
  // Users need not be saved: they follow from the stacks. Evicted transitions no longer
  // matter, because first_valid_id is already beyond them.
  std::fill(last_user_.begin(), last_user_.end(), 0);
  const std::uint32_t* slots = state.stacks.data();
  for (std::uint64_t id = first; id < next; ++id, slots += stacks_width()) {
    std::copy_n(slots, stacks_width(), StacksOf(id));
    for (const std::uint32_t slot : std::span(slots, stacks_width())) {
      if (slot != kZeroSlot) last_user_[slot] = id + 1;
    }
  }
}

void FrameStore::CheckValid() const {
  UPER_CHECK(first_valid_id_ <= next_id_, "valid transitions beyond the newest");
  UPER_CHECK(next_id_ - first_valid_id_ <= capacity(), "more valid transitions than slots");
  for (std::uint64_t id = first_valid_id_; id < next_id_; ++id) {
    for (const std::uint32_t slot : StackSlots(id)) {
      if (slot == kZeroSlot) continue;
      UPER_CHECK(slot < frame_capacity() && slot < next_frame_, "a stack names no frame");
      UPER_CHECK(last_user_[slot] > id,
                 "transition " + std::to_string(id) + " uses a frame that was overwritten");
    }
  }
}

}  // namespace uper
