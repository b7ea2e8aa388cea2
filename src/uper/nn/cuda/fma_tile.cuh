#pragma once

#include "uper/nn/cuda/product_operands.cuh"
#include "uper/nn/cuda/warp_tile.cuh"

namespace uper {

// A tile of a product in plain fp32: a lane has kRows / 8 x kColumns / 4 of the results.
template <int kRows_, int kColumns_, Along kA, Along kB>
struct FmaTile {
  static constexpr int kRows = kRows_;
  static constexpr int kColumns = kColumns_;
  static constexpr int kChunk = ProductChunk(kA);
  static constexpr int kStages = 3;                        // chunks in flight and at work
  static constexpr bool kHasColumns = kA == Along::kSide;  // there may be a row of sums
  using ChunkA = PaddedChunk<kA, kRows, kChunk, kA == Along::kLength ? 4 : 0>;
  using ChunkB = PaddedChunk<kB, kColumns, kChunk, kB == Along::kLength ? 4 : 0>;
  static constexpr int kSumsStride = kColumns + 4;  // of a row of a warp's sums in shared memory

  // What one lane knows of a split's product.
  static constexpr int kTileM = kRows / kLanesM;
  static constexpr int kTileN = kColumns / kLanesN;
  struct Sums {
    float sums[kTileM][kTileN] = {};
    float columns[kTileN] = {};
  };

  // Adds a warp's share of a chunk; `columns`: with the row of sums.
  __device__ static void Multiply(const float* stage, int warp, int lane, bool columns,
                                  Sums& result) {
    constexpr int kSteps = kChunk / kProductWarps;  // for one warp
#pragma unroll
    for (int step = 0; step < kSteps; step += 4) {
      float a[4][kTileM];
      float b[4][kTileN];
      LoadSteps<ChunkA, kLanesM>(stage, LaneM(lane), warp * kSteps + step, a);
      LoadSteps<ChunkB, kLanesN>(stage + ChunkA::kFloats, LaneN(lane), warp * kSteps + step, b);
      if (kHasColumns && columns) {
#pragma unroll
        for (int k = 0; k < 4; ++k) {
#pragma unroll
          for (int j = 0; j < kTileN; ++j) result.columns[j] += b[k][j];
        }
      }
#pragma unroll
      for (int k = 0; k < 4; ++k) {
#pragma unroll
        for (int i = 0; i < kTileM; ++i) {
#pragma unroll
          for (int j = 0; j < kTileN; ++j) {
            result.sums[i][j] = fmaf(a[k][i], b[k][j], result.sums[i][j]);
          }
        }
      }
    }
  }

  // To sums [row][kSumsStride] and column_sums [column] of the warp.
  __device__ static void Store(const Sums& result, int lane, bool columns, float* sums,
                               float* column_sums) {
#pragma unroll
    for (int i = 0; i < kTileM; ++i) {
      float* row = sums + SideOfResult<kA, kLanesM>(LaneM(lane), i) * kSumsStride;
#pragma unroll
      for (int j = 0; j < kTileN; j += 4) {
        const int n = SideOfResult<kB, kLanesN>(LaneN(lane), j);
        if constexpr (kB == Along::kSide) {  // four neighbours
          *reinterpret_cast<float4*>(row + n) =
              make_float4(result.sums[i][j], result.sums[i][j + 1], result.sums[i][j + 2],
                          result.sums[i][j + 3]);
        } else {
#pragma unroll
          for (int e = 0; e < 4; ++e) row[n + e * kLanesN] = result.sums[i][j + e];
        }
      }
    }
    if (kHasColumns && columns && LaneM(lane) == 0) {
#pragma unroll
      for (int j = 0; j < kTileN; ++j) {
        column_sums[SideOfResult<kB, kLanesN>(LaneN(lane), j)] = result.columns[j];
      }
    }
  }

 private:
  // The side index of a lane's i-th result: neighbours read neighbouring banks.
  template <Along kAlong, int kLanes>
  __device__ static int SideOfResult(int lane, int i) {
    return kAlong == Along::kLength ? lane + kLanes * i : (i / 4 * kLanes + lane) * 4 + i % 4;
  }

  // Four steps of an operand for one lane: values[step][i].
  template <typename Chunk, int kLanes, int kTile>
  __device__ static void LoadSteps(const float* chunk, int lane, int step,
                                   float (&values)[4][kTile]) {
    if constexpr (Chunk::kAlong == Along::kLength) {
#pragma unroll
      for (int i = 0; i < kTile; ++i) {
        const float4 four =
            *reinterpret_cast<const float4*>(chunk + (lane + kLanes * i) * Chunk::kStride + step);
        values[0][i] = four.x;
        values[1][i] = four.y;
        values[2][i] = four.z;
        values[3][i] = four.w;
      }
    } else {
      static_assert(kTile % 4 == 0, "four neighbours are read at once");
#pragma unroll
      for (int k = 0; k < 4; ++k) {
#pragma unroll
        for (int i = 0; i < kTile; i += 4) {
          const float4 four = *reinterpret_cast<const float4*>(chunk + (step + k) * Chunk::kStride +
                                                               (i / 4 * kLanes + lane) * 4);
          values[k][i] = four.x;
          values[k][i + 1] = four.y;
          values[k][i + 2] = four.z;
          values[k][i + 3] = four.w;
        }
      }
    }
  }
};

}  // namespace uper
