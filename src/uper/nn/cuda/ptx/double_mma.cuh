#pragma once

#include <cuda_runtime.h>

#include "uper/nn/cuda/ptx/mma.cuh"

namespace uper {

// Tensor cores multiply and add up in double precision as fast as others do in single, and leave
// those free for other work. Products of floats are exact there, and of a sum only what is left of
// its double is rounded to a float at the end. Lanes have what mma.cuh says.

// sums [row group, row group + 8][column] += a * b over 4 steps; a [row].
__device__ inline void AddDoubleMma(const double (&a)[2], double b, double (&sums)[4]) {
  asm volatile(
      "mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 "
      "{%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
      : "+d"(sums[0]), "+d"(sums[1]), "+d"(sums[2]), "+d"(sums[3])
      : "d"(a[0]), "d"(a[1]), "d"(b));
}

// A warp's results as floats: its columns as rows `pitch` floats apart, its rows along memory. Of
// tiles of 8 columns the first `count`.
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

// The sums that kSharers warps, or groups of them, have stored `step` floats apart, four
// neighbours at a time, in order.
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

}  // namespace uper
