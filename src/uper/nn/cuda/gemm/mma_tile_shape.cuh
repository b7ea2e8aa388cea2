#pragma once

#include "uper/nn/cuda/gemm/gemm_operands.cuh"

namespace uper {

// What tiles of products on tensor cores share: how operands lie in shared memory, and what a warp
// and a lane have of them. Sides are taken in groups of 8: two of A and one of B are a tile of the
// hardware.
template <int kRows_, int kColumns_, Along kA, Along kB>
struct MmaTileShape {
  static constexpr int kRows = kRows_;
  static constexpr int kColumns = kColumns_;
  static constexpr int kChunk = ProductChunk(kA);
  static constexpr bool kHasColumns = kA == Along::kSide;  // there may be a row of sums
  static constexpr int kSteps = kChunk / kProductWarps;    // of a chunk for one warp
  static constexpr int kLaneSteps = kSteps / 4;            // of one lane
  static_assert(kSteps == 4 || kSteps == 8);
  // A warp reads 8 x 4 floats at a time: 8 rows 4 banks apart, or 4 rows 8 banks apart.
  template <Along kAlong, int kSide>
  using ChunkOf = PaddedChunk<kAlong, kSide, kChunk, kAlong == Along::kLength ? 4 : 8>;
  using ChunkA = ChunkOf<kA, kRows>;
  using ChunkB = ChunkOf<kB, kColumns>;
  static constexpr int kSumsStride = kColumns + 8;  // of a row of a warp's sums in shared memory

  static constexpr int kGroupsM = kRows / 8;
  static constexpr int kGroupsN = kColumns / 8;
  static_assert(kGroupsM % 2 == 0 && kGroupsN % 2 == 0);
};

}  // namespace uper
