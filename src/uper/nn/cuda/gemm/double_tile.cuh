#pragma once

#include "uper/nn/cuda/gemm/mma_tile_shape.cuh"
#include "uper/nn/cuda/ptx/double_mma.cuh"

namespace uper::cuda {

// A tile of a GEMM of floats, with sums in double precision on tensor cores. See MmaTileShape.
template <int kRows_, int kColumns_, Contiguous kA, Contiguous kB>
struct DoubleTile : MmaTileShape<kRows_, kColumns_, kA, kB> {
  using Shape = MmaTileShape<kRows_, kColumns_, kA, kB>;
  static constexpr int kStages = 3;  // chunks that are loaded or used at a time

  // A lane's results of a split.
  struct Sums {
    double sums[Shape::kGroupsM / 2][Shape::kGroupsN][4] = {};  // see AddDoubleMma()
    double columns[Shape::kGroupsN] = {};                       // of the lane's steps
  };

  // Adds a warp's share of a chunk. `columns`: also the row of the bias gradient.
  __device__ static void Multiply(const float* stage, int warp, int lane, bool columns,
                                  Sums& result) {
#pragma unroll
    for (int step = 0; step < Shape::kLaneSteps; ++step) {
      double b[Shape::kGroupsN];
#pragma unroll
      for (int j = 0; j < Shape::kGroupsN; ++j) {
        b[j] = Operand<typename Shape::ChunkB>(stage + Shape::ChunkA::kFloats, warp, lane, step, j);
        if (Shape::kHasColumns && columns) result.columns[j] += b[j];
      }
#pragma unroll
      for (int i = 0; i < Shape::kGroupsM; i += 2) {
        const double a[2] = {Operand<typename Shape::ChunkA>(stage, warp, lane, step, i),
                             Operand<typename Shape::ChunkA>(stage, warp, lane, step, i + 1)};
#pragma unroll
        for (int j = 0; j < Shape::kGroupsN; ++j) AddDoubleMma(a, b[j], result.sums[i / 2][j]);
      }
    }
  }

  // Stores to sums [row][kSumsStride] and column_sums [column] of the warp.
  __device__ static void Store(const Sums& result, int lane, bool columns, float* sums,
                               float* column_sums) {
#pragma unroll
    for (int i = 0; i < Shape::kGroupsM; ++i) {
      float* row = sums + (8 * i + MmaGroup(lane)) * Shape::kSumsStride + 2 * MmaPlace(lane);
#pragma unroll
      for (int j = 0; j < Shape::kGroupsN; ++j) {
        const double(&four)[4] = result.sums[i / 2][j];
        *reinterpret_cast<float2*>(row + 8 * j) = make_float2(
            static_cast<float>(four[2 * (i % 2)]), static_cast<float>(four[2 * (i % 2) + 1]));
      }
    }
    if (Shape::kHasColumns && columns) {
#pragma unroll
      for (int j = 0; j < Shape::kGroupsN; ++j) {
        double sum = result.columns[j];  // over the lanes of a group, which have different steps
        sum += __shfl_xor_sync(0xffffffffU, sum, 1);
        sum += __shfl_xor_sync(0xffffffffU, sum, 2);
        if (MmaPlace(lane) == 0) {
          column_sums[8 * j + MmaGroup(lane)] = static_cast<float>(sum);
        }
      }
    }
  }

 private:
  // A lane's entry in a group of 8 rows or columns.
  template <typename Chunk>
  __device__ static double Operand(const float* chunk, int warp, int lane, int step, int group) {
    const int side = 8 * group + MmaGroup(lane);
    const int at = warp * Shape::kSteps + 4 * step + MmaPlace(lane);
    return chunk[Chunk::kContiguous == Contiguous::kReduction ? side * Chunk::kStride + at
                                                              : at * Chunk::kStride + side];
  }
};

}  // namespace uper::cuda
