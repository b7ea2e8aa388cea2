#pragma once

#include "uper/nn/cuda/ptx/mma.cuh"

namespace uper::cuda {

// Tensor cores multiply tiles of 16 x 8 results over 32 steps with bytes as operands, and add
// exactly in 32 bits. A word holds the bytes of four steps, the first one lowest. Lane (group,
// place) holds rows group and group + 8 of A and column group of B, at the steps from 4 place and
// from 16 + 4 place. It gets the results of rows group and group + 8 in columns 2 place and 2 place
// + 1.

// sums [row group, row group + 8][column] += a * b; a [steps][row], b [steps]. Both unsigned.
__device__ inline void AddByteMma(const unsigned (&a)[4], const unsigned (&b)[2], int (&sums)[4]) {
  asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// The same with signed bytes of B, from -128 to 127.
__device__ inline void AddSignedByteMma(const unsigned (&a)[4], const unsigned (&b)[2],
                                        int (&sums)[4]) {
  asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// Loads the `a` of AddByteMma() from shared memory. Each lane gives the address of 16 bytes: lanes
// 0 to 15 the first 16 steps of rows 0 to 15, lanes 16 to 31 the other steps.
__device__ inline void LoadByteRows(const uint4* shared, unsigned (&a)[4]) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3])
               : "r"(static_cast<unsigned>(__cvta_generic_to_shared(shared)))
               : "memory");
}

// Byte i of word j becomes byte j of word i.
__device__ inline void TransposeBytes(unsigned (&words)[4]) {
  const unsigned low[2] = {__byte_perm(words[0], words[1], 0x5140),
                           __byte_perm(words[2], words[3], 0x5140)};
  const unsigned high[2] = {__byte_perm(words[0], words[1], 0x7362),
                            __byte_perm(words[2], words[3], 0x7362)};
  words[0] = __byte_perm(low[0], low[1], 0x5410);
  words[1] = __byte_perm(low[0], low[1], 0x7632);
  words[2] = __byte_perm(high[0], high[1], 0x5410);
  words[3] = __byte_perm(high[0], high[1], 0x7632);
}

}  // namespace uper::cuda
