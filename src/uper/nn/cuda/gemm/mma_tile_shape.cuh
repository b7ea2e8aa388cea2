#pragma once

#include "uper/nn/cuda/gemm/gemm_operands.cuh"

namespace uper::cuda {

// The shape that tiles of GEMMs on tensor cores share: the layout of operands in shared memory, and
// the parts of a warp and a lane. Rows and columns come in groups of 8; two groups of A and one of
// B are a tile of the hardware.
template <int kRows_, int kColumns_, Contiguous kA, Contiguous kB>
struct MmaTileShape {
  static constexpr int kRows = kRows_;
  static constexpr int kColumns = kColumns_;
  static constexpr int kChunk = GemmChunk(kA);
  static constexpr bool kHasColumns = kA == Contiguous::kOutput;  // there may be a bias gradient
  static constexpr int kSteps = kChunk / kGemmWarps;              // per warp and chunk
  static constexpr int kLaneSteps = kSteps / 4;                   // per lane
  static_assert(kSteps == 4 || kSteps == 8);
  // A warp reads 8 x 4 floats at a time: 8 rows that are 4 banks apart, or 4 rows that are 8 apart.
  template <Contiguous kContiguous, int kSide>
  using ChunkOf =
      PaddedChunk<kContiguous, kSide, kChunk, kContiguous == Contiguous::kReduction ? 4 : 8>;
  using ChunkA = ChunkOf<kA, kRows>;
  using ChunkB = ChunkOf<kB, kColumns>;
  static constexpr int kSumsStride =
      kColumns + 8;  // pitch of a row of a warp's sums in shared memory

  static constexpr int kGroupsM = kRows / 8;
  static constexpr int kGroupsN = kColumns / 8;
  static_assert(kGroupsM % 2 == 0 && kGroupsN % 2 == 0);
};

}  // namespace uper::cuda
