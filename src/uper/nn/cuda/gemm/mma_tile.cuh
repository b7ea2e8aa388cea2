#pragma once

#include "uper/nn/cuda/gemm/mma_tile_shape.cuh"
#include "uper/nn/cuda/ptx/mma.cuh"

namespace uper::cuda {

// A tile of a GEMM on tensor cores, with operands as kTerms numbers of 11 bits each. See
// MmaTileShape.
template <int kRows_, int kColumns_, Contiguous kA, Contiguous kB, int kTerms>
struct MmaTile : MmaTileShape<kRows_, kColumns_, kA, kB> {
  using Shape = MmaTileShape<kRows_, kColumns_, kA, kB>;
  // Chunks that are loaded or used at a time. Using a chunk takes less time than loading one, so
  // there are as many as leave room for two blocks.
  static constexpr int kStages = kA == Contiguous::kOutput ? 6 : Shape::kRows > 48 ? 3 : 4;

  // A lane's results of a split.
  struct Sums {
    float sums[Shape::kGroupsM / 2][Shape::kGroupsN][4] = {};  // see AddMma()
    float columns[Shape::kGroupsN] = {};                       // of the lane's steps
  };

  // Adds a warp's share of a chunk. `columns`: also the row of the bias gradient.
  __device__ static void Multiply(const float* stage, int warp, int lane, bool columns,
                                  Sums& result) {
    float a[Shape::kGroupsM][Shape::kLaneSteps];
    float b[Shape::kGroupsN][Shape::kLaneSteps];
    LoadSteps<typename Shape::ChunkA>(stage, warp, lane, a);
    LoadSteps<typename Shape::ChunkB>(stage + Shape::ChunkA::kFloats, warp, lane, b);
    if (Shape::kHasColumns && columns) {
#pragma unroll
      for (int j = 0; j < Shape::kGroupsN; ++j) {
#pragma unroll
        for (int step = 0; step < Shape::kLaneSteps; ++step) result.columns[j] += b[j][step];
      }
    }
    unsigned b_terms[Shape::kGroupsN][kTerms][Shape::kLaneSteps];
#pragma unroll
    for (int j = 0; j < Shape::kGroupsN; ++j) SplitIntoTf32(b[j], b_terms[j]);
#pragma unroll
    for (int i = 0; i < Shape::kGroupsM; i += 2) {
      float two[2 * Shape::kLaneSteps];  // [step][row]
#pragma unroll
      for (int e = 0; e < 2 * Shape::kLaneSteps; ++e) two[e] = a[i + e % 2][e / 2];
      unsigned a_terms[kTerms][2 * Shape::kLaneSteps];
      SplitIntoTf32(two, a_terms);
#pragma unroll
      for (int j = 0; j < Shape::kGroupsN; ++j) AddMma(a_terms, b_terms[j], result.sums[i / 2][j]);
    }
  }

  // Stores to sums [row][kSumsStride] and column_sums [column] of the warp.
  __device__ static void Store(const Sums& result, int lane, bool columns, float* sums,
                               float* column_sums) {
    StoreMma<Shape::kGroupsM>(result.sums, lane, Shape::kSumsStride, sums);
    if (Shape::kHasColumns && columns) {
#pragma unroll
      for (int j = 0; j < Shape::kGroupsN; ++j) {
        float sum = result.columns[j];  // over the lanes of a group, which have different steps
        sum += __shfl_xor_sync(0xffffffffU, sum, 1);
        sum += __shfl_xor_sync(0xffffffffU, sum, 2);
        if (MmaPlace(lane) == 0) column_sums[8 * j + MmaGroup(lane)] = sum;
      }
    }
  }

 private:
  // A lane's entries of an operand: values[group][step].
  template <typename Chunk, int kGroups>
  __device__ static void LoadSteps(const float* chunk, int warp, int lane,
                                   float (&values)[kGroups][Shape::kLaneSteps]) {
    constexpr bool kAlongReduction = Chunk::kContiguous == Contiguous::kReduction;
    const int side = MmaGroup(lane);
    const int step = warp * Shape::kSteps + MmaPlace(lane);
    chunk += kAlongReduction ? side * Chunk::kStride + step : step * Chunk::kStride + side;
#pragma unroll
    for (int group = 0; group < kGroups; ++group) {
#pragma unroll
      for (int i = 0; i < Shape::kLaneSteps; ++i) {
        values[group][i] = chunk[kAlongReduction ? 8 * group * Chunk::kStride + 4 * i
                                                 : 4 * i * Chunk::kStride + 8 * group];
      }
    }
  }
};

}  // namespace uper::cuda
