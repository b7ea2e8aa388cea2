#pragma once

#include <cuda_runtime.h>

#include "uper/nn/cuda/observations/frame_pointer_table.h"

namespace uper {

// How long a kernel waits for a plane, ns: longer than a step of a game takes. Then it goes on with
// zeros, so that nothing hangs if nobody puts the plane there, and says that it was late.
inline constexpr unsigned long long kLongestPlaneWait = 1'000'000;

// Relaxed is enough: what the host has written before the entry is in no cache of the GPU, and is
// asked for at the address that the entry has, so that it cannot be older.
__device__ inline std::uint64_t LoadEntry(const PlaneEntry::Copy* entry) {
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

__device__ inline const std::byte* PlaneOf(std::uint64_t bits) {
  return reinterpret_cast<const std::byte*>(bits & PlaneEntry::kAddress);
}

// `row`: whose entry it is.
__device__ inline const std::byte* AwaitPlane(const PlanesToRead& planes, int row, int index,
                                              int copy) {
  const PlaneEntry::Copy* entry = planes.entries[index].copies + copy;
  if (planes.made == nullptr) return PlaneOf(entry->bits);
  const std::uint64_t tag = static_cast<std::uint64_t>(planes.made[row] + 1)
                            << PlaneEntry::kTagShift;
  const auto is_mine = [&](std::uint64_t bits) { return (bits & ~PlaneEntry::kAddress) == tag; };
  std::uint64_t bits = LoadEntry(entry);
  if (!is_mine(bits)) {
    const unsigned long long end = Nanoseconds() + kLongestPlaneWait;
    while (!is_mine(bits = LoadEntry(entry)) && Nanoseconds() < end) {
    }
  }
  if (!is_mine(bits)) {
    // Either the host sees that it was late, or this sees what the host has put there.
    *static_cast<volatile int*>(planes.late) = 1;
    __threadfence_system();
    bits = LoadEntry(entry);
    if (!is_mine(bits)) return nullptr;
  }
  asm volatile("fence.proxy.async;" ::: "memory");  // for copies of what the host has written
  return PlaneOf(bits);
}

}  // namespace uper
