#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "uper/base/check.h"
#include "uper/nn/cuda/runtime/device_buffer.h"

namespace uper::cuda {

// Where a frame of an observation is, in the GPU's or in pinned memory; nullptr: zeros. The upper
// bits, which no address uses, hold the low bits of a decision's number. So a kernel that was
// launched early can wait for the entry of its own decision. Loads from one line of the host's
// memory wait for each other, about 1 us each. Therefore each entry has several copies on different
// lines.
struct FramePointerEntry {
  static constexpr int kTagShift = 60;
  static constexpr std::uint64_t kAddress = (std::uint64_t{1} << kTagShift) - 1;
  static constexpr int kCopies = 2;
  struct alignas(128) Copy {
    std::uint64_t bits = 0;
  };

  Copy copies[kCopies];
};

// The view that kernels have of a FramePointerTable.
struct FramePointerView {
  const FramePointerEntry* entries = nullptr;  // [row, frame]; nullptr: there is no table
  // [row]: decisions before this one, in the GPU's memory. nullptr: do not check the number.
  const int* decisions_made = nullptr;
  int* timed_out = nullptr;  // set by a kernel that stops waiting
};

// Where the frames [row, frame] of the next decisions are, in pinned memory. The host writes
// entries before or while kernels read them.
class FramePointerTable {
 public:
  FramePointerTable() = default;
  FramePointerTable(std::size_t rows, std::size_t frames)
      : frames_(frames), entries_(rows * frames), timed_out_(1) {}

  std::size_t frames() const { return frames_; }  // per row
  FramePointerView ForKernels(const int* decisions_made) {
    return {.entries = entries_.data(),
            .decisions_made = decisions_made,
            .timed_out = timed_out_.data()};
  }

  // Writes all frames of a row, for its `decision`-th decision.
  void Put(std::size_t row, int decision, std::span<const std::byte* const> frames) {
    UPER_CHECK(frames.size() == frames_ && (row + 1) * frames_ <= entries_.size(),
               "the frames must fit the table");
    for (std::size_t i = 0; i < frames_; ++i) {
      const std::uint64_t bits =
          reinterpret_cast<std::uint64_t>(frames[i]) | static_cast<std::uint64_t>(decision)
                                                           << FramePointerEntry::kTagShift;
      for (FramePointerEntry::Copy& copy : entries_[row * frames_ + i].copies) {
        std::atomic_ref(copy.bits).store(bits, std::memory_order_release);
      }
    }
  }
  // Whether a kernel may have continued without the frames that were put for it. If false, no
  // kernel will.
  bool TimedOut() {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return std::atomic_ref(timed_out_[0]).load(std::memory_order_relaxed) != 0;
  }
  // REQUIRES: no kernel waits for frames.
  void ClearTimeout() { timed_out_[0] = 0; }

 private:
  std::size_t frames_ = 0;
  PinnedBuffer<FramePointerEntry> entries_;
  PinnedBuffer<int> timed_out_;
};

}  // namespace uper::cuda
