#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "uper/base/check.h"
#include "uper/nn/cuda/runtime/device_buffer.h"

namespace uper {

// Where a plane of an observation to act on is, in the GPU's or in pinned memory; nullptr: zeros.
// The entry says for which decision it was made, by the last bits of a count, in bits that no
// address has: a kernel that was started before its planes were known waits for its own. Reads of
// one line of the host's memory wait for each other, a microsecond each: so there are copies, of
// which no two share a line.
struct PlaneEntry {
  static constexpr int kTagShift = 60;
  static constexpr std::uint64_t kAddress = (std::uint64_t{1} << kTagShift) - 1;
  static constexpr int kCopies = 2;
  struct alignas(128) Copy {
    std::uint64_t bits = 0;
  };

  Copy copies[kCopies];
};

// What kernels know of a PlaneTable.
struct PlanesToRead {
  const PlaneEntry* entries = nullptr;  // [row, plane]; nullptr: there is no table
  // [row]: decisions before this one, in the GPU's memory. nullptr: entries of any are right.
  const int* made = nullptr;
  int* late = nullptr;  // set by who waits no longer
};

// Where the planes [row, plane] of decisions to come are, in pinned memory: the host puts that
// there before or while kernels look for it.
class PlaneTable {
 public:
  PlaneTable() = default;
  PlaneTable(std::size_t rows, std::size_t planes)
      : planes_(planes), entries_(rows * planes), late_(1) {}

  std::size_t planes() const { return planes_; }  // of a row
  PlanesToRead ForKernels(const int* made) {
    return {.entries = entries_.data(), .made = made, .late = late_.data()};
  }

  // All planes of a row, for its `decision`-th decision.
  void Put(std::size_t row, int decision, std::span<const std::byte* const> planes) {
    UPER_CHECK(planes.size() == planes_ && (row + 1) * planes_ <= entries_.size(),
               "a row of another form");
    for (std::size_t i = 0; i < planes_; ++i) {
      const std::uint64_t bits = reinterpret_cast<std::uint64_t>(planes[i]) |
                                 static_cast<std::uint64_t>(decision) << PlaneEntry::kTagShift;
      for (PlaneEntry::Copy& copy : entries_[row * planes_ + i].copies) {
        std::atomic_ref(copy.bits).store(bits, std::memory_order_release);
      }
    }
  }
  // Whether a kernel may have gone on without what was put there for it. If not, none will.
  bool MayBeLate() {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return std::atomic_ref(late_[0]).load(std::memory_order_relaxed) != 0;
  }
  // REQUIRES: no kernel waits.
  void ForgetLate() { late_[0] = 0; }

 private:
  std::size_t planes_ = 0;
  PinnedBuffer<PlaneEntry> entries_;
  PinnedBuffer<int> late_;
};

}  // namespace uper
