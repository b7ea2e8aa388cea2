#pragma once

namespace uper {

// Tensor cores also multiply bytes: tiles of 16 x 8 results over 32 steps, added up in whole
// numbers of 32 bits, so that nothing is rounded. Lanes are (group, place) as in mma.cuh. A
// register has four steps, the first in its lowest byte: 4 place to 4 place + 3, or these plus 16.
// A lane gives rows group and group + 8 of A and column group of B, and has the same results as
// there.

// sums [row group, row group + 8][column] += a * b; a [steps][row] without a sign, b [steps] with
// or without one.
template <bool kSignedB>
__device__ void AddByteMma(const unsigned (&a)[4], const unsigned (&b)[2], int (&sums)[4]) {
  if constexpr (kSignedB) {
    asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  } else {
    asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
}

// The a of AddByteMma() from shared memory. A lane gives the address of 16 bytes: lanes 0 to 15 the
// first 16 steps of rows 0 to 15, lanes 16 to 31 the other steps.
__device__ inline void LoadByteRows(const uint4* shared, unsigned (&a)[4]) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3])
               : "r"(static_cast<unsigned>(__cvta_generic_to_shared(shared)))
               : "memory");
}

}  // namespace uper
