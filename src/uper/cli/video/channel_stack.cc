#include "uper/cli/video/channel_stack.h"

#include <algorithm>
#include <cstring>

#include "uper/base/check.h"

namespace uper {

ObservationStack::ObservationStack(const EnvironmentSpec& spec)
    : frame_bytes_(spec.observation_bytes()),
      cell_bytes_(spec.element_bytes() * static_cast<std::size_t>(spec.channels)),
      depth_(static_cast<std::size_t>(spec.frame_stack)),
      frames_(frame_bytes_ * depth_) {}

void ObservationStack::Clear() {
  std::fill(frames_.begin(), frames_.end(), std::byte{0});
  count_ = 0;
}

void ObservationStack::Push(std::span<const std::byte> observation) {
  UPER_CHECK(observation.size() == frame_bytes_, "an observation of another environment");
  if (count_ == depth_) {
    std::shift_left(frames_.begin(), frames_.end(), static_cast<std::ptrdiff_t>(frame_bytes_));
    --count_;
  }
  std::copy(observation.begin(), observation.end(),
            frames_.begin() + static_cast<std::ptrdiff_t>(count_ * frame_bytes_));
  ++count_;
}

void ObservationStack::Write(std::span<std::byte> out) const {
  UPER_CHECK(out.size() == bytes(), "a buffer of another size");
  std::byte* to = out.data();
  for (std::size_t cell = 0; cell < frame_bytes_; cell += cell_bytes_) {
    for (std::size_t frame = 0; frame < depth_; ++frame, to += cell_bytes_) {
      std::memcpy(to, frames_.data() + frame * frame_bytes_ + cell, cell_bytes_);
    }
  }
}

}  // namespace uper
