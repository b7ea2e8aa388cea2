#pragma once

#include <cuda_pipeline_primitives.h>

#include <cstdint>

namespace uper {

// Starts an asynchronous copy of `count` consecutive floats into shared memory, 16 bytes at a time
// whatever their alignment, by threads 0..threads-1: entry i arrives at to[shift + i], and `shift`
// (0 to 3) is returned. To be committed and awaited by the caller.
// REQUIRES: `to` is 16-byte aligned and has room for count + 6 floats; the up to three floats
// before `from`, down to its 16-byte boundary, may be read.
__device__ inline int StartCopy(float* to, const float* from, int count, int thread, int threads) {
  const int shift = static_cast<int>(reinterpret_cast<std::uintptr_t>(from) / sizeof(float) % 4);
  const float* aligned = from - shift;
  const int end = shift + count;
  for (int i = 4 * thread; i < end; i += 4 * threads) {
    const int beyond = i + 4 > end ? i + 4 - end : 0;
    __pipeline_memcpy_async(to + i, aligned + i, 4 * sizeof(float), beyond * sizeof(float));
  }
  return shift;
}

}  // namespace uper
