#pragma once

#include "uper/nn/cuda/gemm/mma_tile_shape.cuh"
#include "uper/nn/cuda/ptx/double_mma.cuh"

namespace uper {

// A tile of a product of floats with sums in double precision, on tensor cores. See MmaTileShape.
template <int kRows_, int kColumns_, Along kA, Along kB>
struct DoubleTile : MmaTileShape<kRows_, kColumns_, kA, kB> {
  using Shape = MmaTileShape<kRows_, kColumns_, kA, kB>;
  using Shape::kChunk;
  using Shape::kColumns;
  using Shape::kGroupsM;
  using Shape::kGroupsN;
  using Shape::kHasColumns;
  using Shape::kLaneSteps;
  using Shape::kRows;
  using Shape::kSteps;
  using Shape::kSumsStride;
  using typename Shape::ChunkA;
  using typename Shape::ChunkB;
  static constexpr int kStages = 3;  // chunks in flight and at work

  // What one lane knows of a split's product.
  struct Sums {
    double sums[kGroupsM / 2][kGroupsN][4] = {};  // see AddDoubleMma()
    double columns[kGroupsN] = {};                // of the lane's steps
  };

  // Adds a warp's share of a chunk; `columns`: with the row of sums.
  __device__ static void Multiply(const float* stage, int warp, int lane, bool columns,
                                  Sums& result) {
#pragma unroll
    for (int step = 0; step < kLaneSteps; ++step) {
      double b[kGroupsN];
#pragma unroll
      for (int j = 0; j < kGroupsN; ++j) {
        b[j] = Operand<ChunkB>(stage + ChunkA::kFloats, warp, lane, step, j);
        if (kHasColumns && columns) result.columns[j] += b[j];
      }
#pragma unroll
      for (int i = 0; i < kGroupsM; i += 2) {
        const double a[2] = {Operand<ChunkA>(stage, warp, lane, step, i),
                             Operand<ChunkA>(stage, warp, lane, step, i + 1)};
#pragma unroll
        for (int j = 0; j < kGroupsN; ++j) AddDoubleMma(a, b[j], result.sums[i / 2][j]);
      }
    }
  }

  // To sums [row][kSumsStride] and column_sums [column] of the warp.
  __device__ static void Store(const Sums& result, int lane, bool columns, float* sums,
                               float* column_sums) {
#pragma unroll
    for (int i = 0; i < kGroupsM; ++i) {
      float* row = sums + (8 * i + MmaGroup(lane)) * kSumsStride + 2 * MmaPlace(lane);
#pragma unroll
      for (int j = 0; j < kGroupsN; ++j) {
        const double(&four)[4] = result.sums[i / 2][j];
        *reinterpret_cast<float2*>(row + 8 * j) = make_float2(
            static_cast<float>(four[2 * (i % 2)]), static_cast<float>(four[2 * (i % 2) + 1]));
      }
    }
    if (kHasColumns && columns) {
#pragma unroll
      for (int j = 0; j < kGroupsN; ++j) {
        double sum = result.columns[j];  // over the places: theirs are different steps
        sum += __shfl_xor_sync(0xffffffffU, sum, 1);
        sum += __shfl_xor_sync(0xffffffffU, sum, 2);
        if (MmaPlace(lane) == 0) {
          column_sums[8 * j + MmaGroup(lane)] = static_cast<float>(sum);
        }
      }
    }
  }

 private:
  // Of a group of 8 sides, a lane's.
  template <typename Chunk>
  __device__ static double Operand(const float* chunk, int warp, int lane, int step, int group) {
    const int side = 8 * group + MmaGroup(lane);
    const int at = warp * kSteps + 4 * step + MmaPlace(lane);
    return chunk[Chunk::kAlong == Along::kLength ? side * Chunk::kStride + at
                                                 : at * Chunk::kStride + side];
  }
};

}  // namespace uper
