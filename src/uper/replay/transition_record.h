#pragma once

#include <cstddef>
#include <cstdint>

namespace uper {

// A transition as bytes, on disk and on a GPU: first its observations (both whole, or the slots of
// their frames: [2, depth] of 32 bits), then this.
struct RecordTail {
  std::int32_t a_tm1 = 0;
  float r_t = 0;
  float discount_t = 0;
  std::uint32_t noisy = 0;  // injected noise touched one of its steps
  std::uint64_t mask = 0;   // bit k: ensemble member k learns from it
};
static_assert(sizeof(RecordTail) == 24, "records have no padding");

}  // namespace uper
