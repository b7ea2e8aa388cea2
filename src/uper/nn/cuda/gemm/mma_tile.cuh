#pragma once

#include "uper/nn/cuda/gemm/mma_tile_shape.cuh"
#include "uper/nn/cuda/ptx/mma.cuh"

namespace uper {

// A tile of a product on tensor cores, from operands of kTerms numbers of 11 bits each. See
// MmaTileShape.
template <int kRows_, int kColumns_, Along kA, Along kB, int kTerms>
struct MmaTile : MmaTileShape<kRows_, kColumns_, kA, kB> {
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
  // Chunks in flight and at work: they are done sooner than new ones come. As many as leave room
  // for two blocks.
  static constexpr int kStages = kA == Along::kSide ? 6 : kRows > 48 ? 3 : 4;

  // What one lane knows of a split's product.
  struct Sums {
    float sums[kGroupsM / 2][kGroupsN][4] = {};  // see AddMma()
    float columns[kGroupsN] = {};                // of the lane's steps
  };

  // Adds a warp's share of a chunk; `columns`: with the row of sums.
  __device__ static void Multiply(const float* stage, int warp, int lane, bool columns,
                                  Sums& result) {
    float a[kGroupsM][kLaneSteps];
    float b[kGroupsN][kLaneSteps];
    LoadSteps<ChunkA>(stage, warp, lane, a);
    LoadSteps<ChunkB>(stage + ChunkA::kFloats, warp, lane, b);
    if (kHasColumns && columns) {
#pragma unroll
      for (int j = 0; j < kGroupsN; ++j) {
#pragma unroll
        for (int step = 0; step < kLaneSteps; ++step) result.columns[j] += b[j][step];
      }
    }
    unsigned b_terms[kGroupsN][kTerms][kLaneSteps];
#pragma unroll
    for (int j = 0; j < kGroupsN; ++j) SplitIntoTf32(b[j], b_terms[j]);
#pragma unroll
    for (int i = 0; i < kGroupsM; i += 2) {
      float two[2 * kLaneSteps];  // [step][row]
#pragma unroll
      for (int e = 0; e < 2 * kLaneSteps; ++e) two[e] = a[i + e % 2][e / 2];
      unsigned a_terms[kTerms][2 * kLaneSteps];
      SplitIntoTf32(two, a_terms);
#pragma unroll
      for (int j = 0; j < kGroupsN; ++j) AddMma(a_terms, b_terms[j], result.sums[i / 2][j]);
    }
  }

  // To sums [row][kSumsStride] and column_sums [column] of the warp.
  __device__ static void Store(const Sums& result, int lane, bool columns, float* sums,
                               float* column_sums) {
    StoreMma<kGroupsM>(result.sums, lane, kSumsStride, sums);
    if (kHasColumns && columns) {
#pragma unroll
      for (int j = 0; j < kGroupsN; ++j) {
        float sum = result.columns[j];  // over the places: theirs are different steps
        sum += __shfl_xor_sync(0xffffffffU, sum, 1);
        sum += __shfl_xor_sync(0xffffffffU, sum, 2);
        if (MmaPlace(lane) == 0) column_sums[8 * j + MmaGroup(lane)] = sum;
      }
    }
  }

 private:
  // A lane's steps of an operand: values[group][step].
  template <typename Chunk, int kGroups>
  __device__ static void LoadSteps(const float* chunk, int warp, int lane,
                                   float (&values)[kGroups][kLaneSteps]) {
    constexpr bool kAlongLength = Chunk::kAlong == Along::kLength;
    const int side = MmaGroup(lane);
    const int step = warp * kSteps + MmaPlace(lane);
    chunk += kAlongLength ? side * Chunk::kStride + step : step * Chunk::kStride + side;
#pragma unroll
    for (int group = 0; group < kGroups; ++group) {
#pragma unroll
      for (int i = 0; i < kLaneSteps; ++i) {
        values[group][i] = chunk[kAlongLength ? 8 * group * Chunk::kStride + 4 * i
                                              : 4 * i * Chunk::kStride + 8 * group];
      }
    }
  }
};

}  // namespace uper
