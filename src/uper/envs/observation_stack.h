#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "uper/core/frame_stack.h"
#include "uper/envs/environment.h"

namespace uper {

// How the observations of a stack lie in memory.
enum class StackLayout {
  kPlanes,        // [stack, observation]: what networks read
  kChannelsLast,  // [height, width, stack * channels]: one image
};

// The stacked observation of an agent that plays without a replay memory (evaluation, rollout): the
// newest spec.frame_stack observations of the episode, in the order of FrameStack. In the layout
// kPlanes the bytes equal those of TransitionStore::current(). Allocates only when constructed.
// Not thread-safe.
class ObservationStack {
 public:
  // REQUIRES: 1 <= spec.frame_stack <= FrameStack::kMaxDepth.
  explicit ObservationStack(const EnvironmentSpec& spec, StackLayout layout = StackLayout::kPlanes);

  // The buffer for the environment's next observation. After writing call Start() if the
  // observation is the first of an episode, else Push(). bytes() does not change before that.
  std::span<std::byte> next() { return Frame(next_id_); }
  void Start();
  void Push();

  // The stacked observation in the layout.
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::span<std::byte> Frame(std::uint64_t id);
  void Write(std::uint64_t id, std::size_t position);

  // Constant after construction.
  const std::size_t depth_;
  const std::size_t frame_bytes_;
  const std::size_t chunk_bytes_;  // bytes of one frame that lie together in bytes_

  FrameStack stack_;
  std::uint64_t next_id_ = 0;
  std::vector<std::byte> frames_;  // ring: the frame of an id lies at id % depth
  std::vector<std::byte> bytes_;
};

}  // namespace uper
