#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "uper/base/check.h"

namespace uper {

// The id of a frame of zeros, which pads a stack that is not full yet.
inline constexpr std::uint64_t kZeroFrame = std::numeric_limits<std::uint64_t>::max();

// The ids of the frames in an observation, oldest first. Until `depth` frames exist, zeros follow
// them (A000, AB00, ABC0, ABCD, BCDE: DQN Zoo's order). Use one stack per environment. Call Clear()
// at a reset and Push() for every observation, including the first and the last.
class FrameStack {
 public:
  static constexpr std::size_t kMaxDepth = 8;

  // REQUIRES: 1 <= depth <= kMaxDepth.
  explicit FrameStack(std::size_t depth) : depth_(depth) {
    UPER_CHECK(depth >= 1 && depth <= kMaxDepth, "a stack of 1 to 8 frames");
    Clear();
  }

  void Clear() {
    frames_.fill(kZeroFrame);
    count_ = 0;
  }

  void Push(std::uint64_t frame) {
    if (count_ == depth_) {
      std::shift_left(frames_.begin(), frames_.begin() + static_cast<std::ptrdiff_t>(depth_), 1);
      --count_;
    }
    frames_[count_++] = frame;
  }

  std::span<const std::uint64_t> frames() const { return std::span(frames_).first(depth_); }
  bool operator==(const FrameStack&) const = default;

 private:
  std::size_t depth_;
  std::size_t count_ = 0;
  std::array<std::uint64_t, kMaxDepth> frames_;
};

}  // namespace uper
