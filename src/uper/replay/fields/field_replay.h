#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "uper/replay/fields/component_store.h"
#include "uper/replay/fields/state_stream.h"
#include "uper/replay/replay_buffer.h"
#include "uper/replay/storage/byte_ring.h"
#include "uper/replay/storage/frame_store.h"
#include "uper/replay/storage/mask_store.h"
#include "uper/replay/transition_replay.h"

namespace uper {

struct FieldReplayOptions {
  TransitionReplayOptions replay;
  std::vector<std::size_t> field_bytes;  // of each field of one transition; each >= 1
  // Frames that are stored once: every transition then also has the stacks s_tm1 and s_t.
  std::optional<FrameStoreOptions> frames;
  bool keep_components = false;  // of the priorities: see component_store.h

  std::size_t RowBytes() const;
  // The memory that the replay memory will use once it is full.
  std::size_t MemoryBytes() const;
};

// The frames of a transition before and after its steps.
struct FrameStacks {
  FrameStack s_tm1;
  FrameStack s_t;
};

// The caller's memory for a batch: one pointer per field to [batch, field_bytes], and with frames
// one to each stack, [batch, depth, frame]. A null pointer leaves that array out.
struct FieldBatch {
  std::span<std::byte* const> fields;
  std::byte* s_tm1 = nullptr;
  std::byte* s_t = nullptr;
  std::uint64_t* masks = nullptr;
};

// A replay memory of transitions that consist of any fields, as bytes. It knows nothing of their
// meaning: a language binding says which arrays there are. The fields of one transition lie beside
// each other, so a draw costs one place in memory. Ids, draws and priorities are those of
// ReplayBuffer. Not thread-safe.
class FieldReplay {
 public:
  // Throws Error(kUsage) if an option is out of range, Error(kResources) if the memory cannot be
  // had.
  FieldReplay(const FieldReplayOptions& options, std::uint64_t seed);

  const FieldReplayOptions& options() const { return options_; }
  const ReplayBuffer& buffer() const { return buffer_; }
  ReplayBuffer& mutable_buffer() { return buffer_; }
  std::size_t size() const { return buffer_.size(); }

  // Stores a frame; later transitions refer to it by the returned id. May evict the oldest
  // transitions: those that use the overwritten frame. REQUIRES: options.frames.
  std::uint64_t AddFrame(std::span<const std::uint8_t> pixels);
  const FrameStore& frames() const { return *frames_; }
  // REQUIRES: options.keep_components.
  ComponentStore& components() { return *components_; }

  // Stores `count` transitions and returns the first of their consecutive ids. fields[f] points to
  // [count, field_bytes[f]]. Empty priorities: each gets the largest. With frames, `stacks` has one
  // entry per transition; throws Error(kUsage) if a frame was overwritten, and has then added the
  // transitions before it. Of more than `capacity` transitions the first ones leave at once.
  std::uint64_t Add(std::span<const std::byte* const> fields, std::size_t count,
                    std::span<const double> priorities = {},
                    std::span<const FrameStacks> stacks = {});

  // Draws sample.ids.size() transitions. REQUIRES: size() > 0.
  void Sample(const WeightOptions& options, const SampleView& sample, const FieldBatch& out);
  // Copies the named transitions. REQUIRES: all ids are live.
  void Gather(std::span<const std::uint64_t> ids, const FieldBatch& out) const;

  // The whole state except for the options, in blocks. A memory with the same options and state
  // continues bit for bit.
  void Save(StateWriter& out) const;
  // Throws Error(kCorrupt) if the state does not fit; the memory is then not to be used further.
  void Load(StateReader& in);
  void CheckValid() const;

 private:
  void PutRow(std::uint64_t id, std::span<const std::byte* const> fields, std::size_t row);
  void CopyRow(std::uint64_t id, std::size_t row, const FieldBatch& out) const;
  void PrefetchRow(std::uint64_t id) const;
  void SaveFrames(StateWriter& out) const;
  void LoadFrames(StateReader& in);

  FieldReplayOptions options_;
  ReplayBuffer buffer_;
  ByteRing rows_;  // [field bytes], one after the other
  MaskStore masks_;
  std::unique_ptr<FrameStore> frames_;
  std::unique_ptr<ComponentStore> components_;
};

}  // namespace uper
