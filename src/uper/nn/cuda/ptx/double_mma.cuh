#pragma once

#include <cuda_runtime.h>

#include "uper/nn/cuda/ptx/mma.cuh"

namespace uper::cuda {

// Double precision on tensor cores is as fast as fp32 on CUDA cores, and leaves CUDA cores free for
// other work. Products of floats are exact in it, and a sum is rounded to float only at the end.
// The lanes hold what mma.cuh says.

// sums [row group, row group + 8][column] += a * b over 4 steps; a [row].
__device__ inline void AddDoubleMma(const double (&a)[2], double b, double (&sums)[4]) {
  asm volatile(
      "mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 "
      "{%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
      : "+d"(sums[0]), "+d"(sums[1]), "+d"(sums[2]), "+d"(sums[3])
      : "d"(a[0]), "d"(a[1]), "d"(b));
}

// Stores a warp's results as floats: its columns become rows that are `pitch` floats apart, its
// rows are contiguous. Only the first `count` tiles of 8 columns are stored.
template <int kTiles>
__device__ void StoreColumns(const double (&sums)[kTiles][4], int count, int pitch, int lane,
                             float* to) {
  to += 2 * MmaPlace(lane) * pitch + MmaGroup(lane);
#pragma unroll
  for (int i = 0; i < kTiles; ++i) {
    if (i >= count) break;
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      to[(8 * i + e % 2) * pitch + e / 2 * 8] = static_cast<float>(sums[i][e]);
    }
  }
}

// Adds the sums of kSharers warps (or groups of warps), stored `step` floats apart, in order; four
// neighbors at a time.
template <int kSharers>
__device__ float4 SumOfSharers(const float* from, int step) {
  float4 sum = *reinterpret_cast<const float4*>(from);
#pragma unroll
  for (int sharer = 1; sharer < kSharers; ++sharer) {
    const float4 part = *reinterpret_cast<const float4*>(from + sharer * step);
    sum.x += part.x;
    sum.y += part.y;
    sum.z += part.z;
    sum.w += part.w;
  }
  return sum;
}

}  // namespace uper::cuda
