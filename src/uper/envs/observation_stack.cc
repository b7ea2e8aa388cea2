#include "uper/envs/observation_stack.h"

#include <cstring>

namespace uper {

ObservationStack::ObservationStack(const EnvironmentSpec& spec, StackLayout layout)
    : depth_(static_cast<std::size_t>(spec.frame_stack)),
      frame_bytes_(spec.observation_bytes()),
      chunk_bytes_(layout == StackLayout::kPlanes
                       ? frame_bytes_
                       : spec.element_bytes() * static_cast<std::size_t>(spec.channels)),
      stack_(depth_),
      frames_(depth_ * frame_bytes_),
      bytes_(depth_ * frame_bytes_) {}

void ObservationStack::Start() {
  stack_.Clear();
  Push();
}

void ObservationStack::Push() {
  stack_.Push(next_id_++);
  for (std::size_t position = 0; position < depth_; ++position) {
    Write(stack_.frames()[position], position);
  }
}

std::span<std::byte> ObservationStack::Frame(std::uint64_t id) {
  return std::span(frames_).subspan(id % depth_ * frame_bytes_, frame_bytes_);
}

// Chunks of the frames alternate in bytes_: [chunk, position]. A plane is a single chunk.
void ObservationStack::Write(std::uint64_t id, std::size_t position) {
  std::byte* to = bytes_.data() + position * chunk_bytes_;
  const std::byte* from = id == kZeroFrame ? nullptr : Frame(id).data();
  for (std::size_t at = 0; at < frame_bytes_; at += chunk_bytes_, to += depth_ * chunk_bytes_) {
    if (from == nullptr) {
      std::memset(to, 0, chunk_bytes_);
    } else {
      std::memcpy(to, from + at, chunk_bytes_);
    }
  }
}

}  // namespace uper
