#pragma once

namespace uper::cuda {

// Tensor cores multiply tiles of 16 x 8 results over 4 or 8 steps of k, with operands of 11 bits
// (TF32) and sums in fp32. The lanes of a warp are numbered (group, place), 8 x 4. A lane holds
// rows group and group + 8 of A and column group of B, at steps place and (of 8) place + 4. It gets
// the results of rows group and group + 8 in columns 2 place and 2 place + 1.

__device__ inline int MmaGroup(int lane) { return lane >> 2; }
__device__ inline int MmaPlace(int lane) { return lane & 3; }

inline constexpr unsigned kTf32Bits = 0xffffe000U;  // the bits of an fp32 number that TF32 keeps

// Rounds to the nearest number of 11 bits, ties away from 0.
__device__ inline unsigned RoundedToTf32(float value) {
  unsigned rounded;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(rounded) : "f"(value));
  return rounded & kTf32Bits;
}

// terms [term][i]: one or two numbers of 11 bits whose sum is close to values[i]. The remainder
// after the first term has 12 bits. Its last bit is cut off, because rounding up would be as wrong.
template <int kTerms, int kCount>
__device__ void SplitIntoTf32(const float (&values)[kCount], unsigned (&terms)[kTerms][kCount]) {
  static_assert(kTerms == 1 || kTerms == 2);
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    terms[0][i] = RoundedToTf32(values[i]);
    if constexpr (kTerms == 2) {
      terms[1][i] = __float_as_uint(values[i] - __uint_as_float(terms[0][i])) & kTf32Bits;
    }
  }
}

// sums [row group, row group + 8][column] += a * b over 4 steps; a [row].
__device__ inline void AddMma(const unsigned (&a)[2], const unsigned (&b)[1], float (&sums)[4]) {
  asm volatile(
      "mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 "
      "{%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(b[0]));
}

// The same over 8 steps; a [step place, place + 4][row], b [step].
__device__ inline void AddMma(const unsigned (&a)[4], const unsigned (&b)[2], float (&sums)[4]) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// The same for operands of one or two terms each; the product of two second terms is left out.
// Tensor cores truncate sums where others round. Over a long k these errors add up and would undo
// the second terms. So tensor cores add up only a few steps, and CUDA cores add the rest.
template <int kTermsA, int kTermsB, int kCountA, int kCountB>
__device__ void AddMma(const unsigned (&a)[kTermsA][kCountA], const unsigned (&b)[kTermsB][kCountB],
                       float (&sums)[4]) {
  if constexpr (kTermsA == 1 && kTermsB == 1) {
    AddMma(a[0], b[0], sums);
  } else {
    float part[4] = {};
    if constexpr (kTermsA > 1) AddMma(a[1], b[0], part);
    if constexpr (kTermsB > 1) AddMma(a[0], b[1], part);
    AddMma(a[0], b[0], part);
#pragma unroll
    for (int i = 0; i < 4; ++i) sums[i] += part[i];
  }
}

// Stores a warp's results as rows that are `stride` floats apart: kRowGroups groups of 8 rows; two
// groups make a tile.
template <int kRowGroups, int kTiles, int kColumnGroups>
__device__ void StoreMma(const float (&sums)[kTiles][kColumnGroups][4], int lane, int stride,
                         float* to) {
  static_assert(kTiles == (kRowGroups + 1) / 2);
#pragma unroll
  for (int i = 0; i < kRowGroups; ++i) {
    float* row = to + (8 * i + MmaGroup(lane)) * stride + 2 * MmaPlace(lane);
#pragma unroll
    for (int j = 0; j < kColumnGroups; ++j) {
      const float(&four)[4] = sums[i / 2][j];
      *reinterpret_cast<float2*>(row + 8 * j) =
          make_float2(four[2 * (i % 2)], four[2 * (i % 2) + 1]);
    }
  }
}

}  // namespace uper::cuda
