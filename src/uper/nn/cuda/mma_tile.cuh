#pragma once

#include "uper/nn/cuda/mma.cuh"
#include "uper/nn/cuda/product_operands.cuh"

namespace uper {

// A tile of a product on tensor cores, from operands of kTerms numbers of 11 bits each. Sides are
// taken in groups of 8: two of A and one of B are a tile of the hardware. Which indices a group
// holds is ours to choose, and so is the order of the steps: as neighbours in shared memory are
// read best.
template <int kRows_, int kColumns_, Along kA, Along kB, int kTerms>
struct MmaTile {
  static constexpr int kRows = kRows_;
  static constexpr int kColumns = kColumns_;
  static constexpr int kChunk = ProductChunk(kA);
  static constexpr bool kHasColumns = kA == Along::kSide;  // there may be a row of sums
  static constexpr int kSteps = kChunk / kProductWarps;    // of a chunk for one warp
  static constexpr int kPairs = kSteps / 4;                // steps of one lane
  static_assert(kSteps == 4 || kSteps == 8);
  static_assert(kSteps == 8 || (kA == Along::kSide && kB == Along::kSide));
  // Rows of shared memory that a warp reads together lie 8 banks apart: 8 lanes of neighbouring
  // rows along the length, or 4 lanes kPairs rows apart.
  template <Along kAlong, int kSide>
  using ChunkOf = PaddedChunk<kAlong, kSide, kChunk, kAlong == Along::kSide && kPairs == 2 ? 4 : 8>;
  using ChunkA = ChunkOf<kA, kRows>;
  using ChunkB = ChunkOf<kB, kColumns>;
  // Of a row of a warp's sums in shared memory.
  static constexpr int kSumsStride = kColumns + (kB == Along::kSide ? 4 : 8);

  // What one lane knows of a split's product.
  static constexpr int kGroupsM = kRows / 8;
  static constexpr int kGroupsN = kColumns / 8;
  static_assert(kGroupsM % 2 == 0 && kGroupsN % 2 == 0);
  struct Sums {
    float sums[kGroupsM / 2][kGroupsN][4] = {};  // see AddMma()
    float columns[kGroupsN] = {};                // of the lane's steps
  };

  // Adds a warp's share of a chunk; `columns`: with the row of sums.
  __device__ static void Multiply(const float* stage, int warp, int lane, bool columns,
                                  Sums& result) {
    float a[kGroupsM][kPairs];
    float b[kGroupsN][kPairs];
    LoadSteps<ChunkA>(stage, warp, lane, a);
    LoadSteps<ChunkB>(stage + ChunkA::kFloats, warp, lane, b);
    if (kHasColumns && columns) {
#pragma unroll
      for (int j = 0; j < kGroupsN; ++j) {
#pragma unroll
        for (int step = 0; step < kPairs; ++step) result.columns[j] += b[j][step];
      }
    }
    unsigned b_terms[kGroupsN][kTerms][kPairs];
#pragma unroll
    for (int j = 0; j < kGroupsN; ++j) SplitIntoTf32(b[j], b_terms[j]);
#pragma unroll
    for (int i = 0; i < kGroupsM; i += 2) {
      float two[2 * kPairs];  // [step][row]
#pragma unroll
      for (int e = 0; e < 2 * kPairs; ++e) two[e] = a[i + e % 2][e / 2];
      unsigned a_terms[kTerms][2 * kPairs];
      SplitIntoTf32(two, a_terms);
#pragma unroll
      for (int j = 0; j < kGroupsN; ++j) AddMma(a_terms, b_terms[j], result.sums[i / 2][j]);
    }
  }

  // To sums [row][kSumsStride] and column_sums [column] of the warp.
  __device__ static void Store(const Sums& result, int lane, bool columns, float* sums,
                               float* column_sums) {
#pragma unroll
    for (int i = 0; i < kGroupsM; ++i) {
      float* row = sums + SideOf<kA, kGroupsM>(i, MmaGroup(lane)) * kSumsStride;
#pragma unroll
      for (int e = 0; e < 2; ++e) {
#pragma unroll
        for (int j = 0; j < kGroupsN; ++j) {
          row[SideOf<kB, kGroupsN>(j, 2 * MmaPlace(lane) + e)] =
              result.sums[i / 2][j][2 * (i % 2) + e];
        }
      }
    }
    if (kHasColumns && columns) {
#pragma unroll
      for (int j = 0; j < kGroupsN; ++j) {
        float sum = result.columns[j];  // over the places: theirs are different steps
        sum += __shfl_xor_sync(0xffffffffU, sum, 1);
        sum += __shfl_xor_sync(0xffffffffU, sum, 2);
        if (MmaPlace(lane) == 0) column_sums[SideOf<kB, kGroupsN>(j, MmaGroup(lane))] = sum;
      }
    }
  }

 private:
  // Groups whose i-th indices are neighbours, where the side lies along memory.
  template <int kGroups>
  static constexpr int kTogether = kGroups % 4 == 0 ? 4 : 2;

  // The side index of a group's i-th entry.
  template <Along kAlong, int kGroups>
  __device__ static int SideOf(int group, int i) {
    if (kAlong == Along::kLength) return 8 * group + i;
    return (group / kTogether<kGroups> * 8 + i) * kTogether<kGroups> + group % kTogether<kGroups>;
  }

  // A lane's steps of an operand: values[group][step].
  template <typename Chunk, int kGroups>
  __device__ static void LoadSteps(const float* chunk, int warp, int lane,
                                   float (&values)[kGroups][kPairs]) {
    const int first = warp * kSteps + MmaPlace(lane) * kPairs;
    if constexpr (Chunk::kAlong == Along::kLength) {
#pragma unroll
      for (int group = 0; group < kGroups; ++group) {
        const float2 two = *reinterpret_cast<const float2*>(
            chunk + (8 * group + MmaGroup(lane)) * Chunk::kStride + first);
        values[group][0] = two.x;
        values[group][1] = two.y;
      }
    } else {
      constexpr int kWidth = kTogether<kGroups>;
      struct alignas(sizeof(float) * kWidth) Neighbours {
        float values[kWidth];
      };
#pragma unroll
      for (int step = 0; step < kPairs; ++step) {
#pragma unroll
        for (int group = 0; group < kGroups; group += kWidth) {
          const auto neighbours = *reinterpret_cast<const Neighbours*>(
              chunk + (first + step) * Chunk::kStride + 8 * group + MmaGroup(lane) * kWidth);
#pragma unroll
          for (int e = 0; e < kWidth; ++e) values[group + e][step] = neighbours.values[e];
        }
      }
    }
  }
};

}  // namespace uper
