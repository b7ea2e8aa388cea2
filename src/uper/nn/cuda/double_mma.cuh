#pragma once

#include "uper/nn/cuda/mma.cuh"

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

}  // namespace uper
