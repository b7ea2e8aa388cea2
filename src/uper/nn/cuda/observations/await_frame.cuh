#pragma once

#include <cuda_runtime.h>

#include "uper/nn/cuda/observations/frame_pointer_table.h"

namespace uper::cuda {

// How long a kernel waits for a frame, in ns: longer than a game takes for a step. After this time
// it continues with zeros and sets `timed_out`, so that nothing hangs if no frame comes.
inline constexpr unsigned long long kMaxFrameWait = 1'000'000;

// A relaxed load is enough. What the host wrote before the entry is in no cache of the GPU. It is
// loaded from the address that the entry holds, so it cannot be older than the entry.
__device__ inline std::uint64_t LoadEntry(const FramePointerEntry::Copy* entry) {
  std::uint64_t bits;
  asm volatile("ld.relaxed.sys.global.u64 %0, [%1];"
               : "=l"(bits)
               : "l"(__cvta_generic_to_global(entry))
               : "memory");
  return bits;
}

__device__ inline unsigned long long Nanoseconds() {
  unsigned long long time;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(time));
  return time;
}

__device__ inline const std::byte* FrameAddress(std::uint64_t bits) {
  return reinterpret_cast<const std::byte*>(bits & FramePointerEntry::kAddress);
}

// `row`: the decision's row of the table.
__device__ inline const std::byte* AwaitFrame(const FramePointerView& frames, int row, int index,
                                              int copy) {
  const FramePointerEntry::Copy* entry = frames.entries[index].copies + copy;
  if (frames.decisions_made == nullptr) return FrameAddress(entry->bits);
  const std::uint64_t tag = static_cast<std::uint64_t>(frames.decisions_made[row] + 1)
                            << FramePointerEntry::kTagShift;
  const auto is_mine = [&](std::uint64_t bits) {
    return (bits & ~FramePointerEntry::kAddress) == tag;
  };
  std::uint64_t bits = LoadEntry(entry);
  if (!is_mine(bits)) {
    const unsigned long long end = Nanoseconds() + kMaxFrameWait;
    while (!is_mine(bits = LoadEntry(entry)) && Nanoseconds() < end) {
    }
  }
  if (!is_mine(bits)) {
    // Either the host sees the time-out, or this load sees what the host has put there.
    *static_cast<volatile int*>(frames.timed_out) = 1;
    __threadfence_system();
    bits = LoadEntry(entry);
    if (!is_mine(bits)) return nullptr;
  }
  asm volatile("fence.proxy.async;" ::: "memory");  // for bulk copies of what the host has written
  return FrameAddress(bits);
}

}  // namespace uper::cuda
