#pragma once

#include <cstddef>
#include <cstdint>

namespace uper {

// The end of a transition's record, on disk and on a GPU. The record begins with the observations:
// both whole, or the 32-bit slots of their frames, [2, depth].
struct RecordTail {
  std::int32_t a_tm1 = 0;
  float r_t = 0;
  float discount_t = 0;
  std::uint32_t noisy = 0;  // injected noise touched one of its steps
  std::uint64_t mask = 0;   // bit k: ensemble member k learns from it
};
static_assert(sizeof(RecordTail) == 24, "records have no padding");

}  // namespace uper
