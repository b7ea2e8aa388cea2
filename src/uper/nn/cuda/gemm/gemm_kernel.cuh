#pragma once

#include <cooperative_groups.h>

#include <algorithm>

#include "uper/base/check.h"
#include "uper/nn/cuda/gemm/gemm.h"
#include "uper/nn/cuda/gemm/gemm_operands.cuh"
#include "uper/nn/cuda/ptx/reductions.cuh"
#include "uper/nn/cuda/runtime/cuda_error.h"
#include "uper/nn/cuda/runtime/launch.cuh"

namespace uper::cuda {

// The kernel of all GEMMs. A Tile (DoubleTile, MmaTile) says how a warp multiplies its share of a
// chunk.

inline constexpr int kGemmBlocksPerMultiprocessor = 2;

// How operands are loaded.
enum class Fetch {
  kAny,      // one at a time
  kVectors,  // four at a time
  kPixels,   // A is bytes
  kTables,   // whole chunks, tap offsets in tables
  kStrides,  // whole chunks, taps at strides
};
// How the operands of all GEMMs of a call can be loaded.
Fetch FetchOf(const GemmBatch& call);

// GEMMs with all, 11 or 22 bits of the operands; each in its own file.
void LaunchDoubleGemms(const GemmBatch& call, cudaStream_t stream);
void LaunchTf32Gemms(const GemmBatch& call, cudaStream_t stream);
void LaunchTf32x3Gemms(const GemmBatch& call, cudaStream_t stream);

__device__ inline float Finished(const Gemm& p, GemmEpilogue epilogue, int m, int n, float value) {
  switch (epilogue) {
    case GemmEpilogue::kBiasRelu:
      return fmaxf(0.0F, value + __ldg(p.bias + n));
    case GemmEpilogue::kMask:
      return __ldg(p.mask + At(p.mask_rows, m) + n) > 0 ? value : 0.0F;
    case GemmEpilogue::kStore:
      break;
  }
  return value;
}

template <typename Tile>
struct BlockMemory {
  static constexpr int kStage = Tile::ChunkA::kFloats + Tile::ChunkB::kFloats;
  // The warps' sums [warp][row][column], with padding that spreads the rows over the banks, and the
  // bias gradients [warp][column].
  static constexpr int kWarpSums = Tile::kRows * Tile::kSumsStride;
  static constexpr int kColumnSums = kGemmWarps * kWarpSums;
  static constexpr int kSums = kColumnSums + kGemmWarps * Tile::kColumns;
  static constexpr int kWork = Tile::kStages * kStage > kSums ? Tile::kStages* kStage : kSums;
  // After it: the results of a split, [row][column] and the bias gradient.
  static constexpr int kTile = (Tile::kRows + 1) * Tile::kColumns;
};

// The i-th result from the warps' sums in shared memory, which are added in order. Results are
// [row][column], then the bias gradient.
template <typename Tile>
__device__ float SumOfWarps(const float* memory, int i) {
  using Memory = BlockMemory<Tile>;
  constexpr int kResults = Tile::kRows * Tile::kColumns;
  const bool is_row = i < kResults;
  const float* from = memory + (is_row ? i / Tile::kColumns * Tile::kSumsStride + i % Tile::kColumns
                                       : Memory::kColumnSums + i - kResults);
  const int step = is_row ? Memory::kWarpSums : Tile::kColumns;
  float sum = 0;
#pragma unroll
  for (int w = 0; w < kGemmWarps; ++w) sum += from[w * step];
  return sum;
}

template <Fetch kFetch, typename Chunk>
struct LoaderOf {
  using Type = ChunkLoader<Chunk, kFetch != Fetch::kAny>;
};
template <typename Chunk>
struct LoaderOf<Fetch::kTables, Chunk> {
  using Type = WholeLoader<Chunk, true>;
};
template <typename Chunk>
struct LoaderOf<Fetch::kStrides, Chunk> {
  using Type = WholeLoader<Chunk, false>;
};

// Grid: tiles of rows, tiles of columns x blocks of a cluster, GEMMs. The blocks of a cluster
// compute the splits of one tile; then each block adds up a part of the tile.
template <typename Tile, Fetch kFetch>
__global__ void __launch_bounds__(kGemmThreads, kGemmBlocksPerMultiprocessor)
    GemmKernel(const __grid_constant__ GemmBatch call) {
  using Memory = BlockMemory<Tile>;
  constexpr int kChunk = Tile::kChunk;
  constexpr bool kPixels = kFetch == Fetch::kPixels;
  extern __shared__ __align__(16) float memory[];
  float* tiles = memory + Memory::kWork;
  const Gemm& p = call.gemms[blockIdx.z];
  const int rank = static_cast<int>(blockIdx.y) % call.cluster;
  const int first_m = static_cast<int>(blockIdx.x) * Tile::kRows;
  const int first_n = static_cast<int>(blockIdx.y) / call.cluster * Tile::kColumns;
  if (first_m >= p.rows || first_n >= p.columns) return;  // the same for the whole cluster

  typename LoaderOf<kFetch, typename Tile::ChunkA>::Type load_a(p.a, p.a_rows, p.a_taps, first_m,
                                                                p.rows);
  typename LoaderOf<kFetch, typename Tile::ChunkB>::Type load_b(p.b, p.b_columns, p.b_taps, first_n,
                                                                p.columns);
  // Compiles to nothing if A is not bytes.
  using Pixels =
      PaddedChunk<Contiguous::kReduction, Tile::kRows, kChunk, Tile::ChunkA::kStride - kChunk>;
  PixelLoader<Pixels> pixels(p.a_bytes, p.a_scale, p.a_rows, p.a_taps, first_m,
                             kPixels ? p.rows : 0);
  const int chunks = (p.length + kChunk - 1) / kChunk;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const bool columns = Tile::kHasColumns && call.with_bias_gradient && blockIdx.x == 0;
  const int block_splits = call.splits / call.cluster;
  const int size = Tile::kRows * Tile::kColumns + (columns ? Tile::kColumns : 0);
  AwaitPredecessor();
  for (int i = 0; i < block_splits; ++i) {
    const int split = rank * block_splits + i;
    const int begin = static_cast<int>(static_cast<long long>(chunks) * split / call.splits);
    const int end = static_cast<int>(static_cast<long long>(chunks) * (split + 1) / call.splits);
    const auto next_stage = [&](float* stage) {
      return stage == memory + (Tile::kStages - 1) * Memory::kStage ? memory
                                                                    : stage + Memory::kStage;
    };
    const auto expect = [&](int chunk) {
      if (!kPixels) load_a.Expect(chunk * kChunk, p.length);
      load_b.Expect(chunk * kChunk, p.length);
    };
    const auto start = [&](int chunk, float* stage) {
      if (chunk < end) {
        if constexpr (kPixels) {
          pixels.Fetch(chunk * kChunk, p.length);
        } else {
          load_a.Start(stage);
        }
        load_b.Start(stage + Tile::ChunkA::kFloats);
      }
      __pipeline_commit();
      expect(chunk + 1);
    };
    typename Tile::Sums result;
    if (i > 0) __syncthreads();  // the previous sums have been read
    expect(begin);
    float* to = memory;  // where the next chunk arrives
    for (int chunk = begin; chunk < begin + Tile::kStages - 1; ++chunk) {
      start(chunk, to);
      if (kPixels && chunk < end) pixels.Store(to);
      to = next_stage(to);
    }
    const float* from = memory;
    for (int chunk = begin; chunk < end; ++chunk) {
      __pipeline_wait_prior(Tile::kStages - 2);
      __syncthreads();
      start(chunk + Tile::kStages - 1, to);
      Tile::Multiply(from, warp, lane, columns, result);
      // All warps have finished reading that stage in the previous round.
      if (kPixels && chunk + Tile::kStages - 1 < end) pixels.Store(to);
      to = next_stage(to);
      from = next_stage(const_cast<float*>(from));
    }
    __pipeline_wait_prior(0);
    __syncthreads();
    Tile::Store(result, lane, columns, memory + warp * Memory::kWarpSums,
                memory + Memory::kColumnSums + warp * Tile::kColumns);
    __syncthreads();
    if (call.splits == 1) break;  // the sums of the warps are the results
    for (int place = static_cast<int>(threadIdx.x); place < size; place += kGemmThreads) {
      tiles[i * Memory::kTile + place] = SumOfWarps<Tile>(memory, place);
    }
  }

  const auto cluster = cooperative_groups::this_cluster();
  if (call.cluster > 1) {
    cluster.sync();
  } else {
    __syncthreads();
  }
  constexpr int kAtOnce = 8;
  const auto part_at = [&](int split, int place) -> const float* {
    if (call.cluster == 1) return tiles + split * Memory::kTile + place;
    if (block_splits == 1) return cluster.map_shared_rank(tiles + place, split);
    return cluster.map_shared_rank(tiles + split % block_splits * Memory::kTile + place,
                                   split / block_splits);
  };
  double squares = 0;
  const int last = size * (rank + 1) / call.cluster;
  for (int i = size * rank / call.cluster + static_cast<int>(threadIdx.x); i < last;
       i += kGemmThreads) {
    const int row = i / Tile::kColumns;
    const int m = row < Tile::kRows ? first_m + row : p.rows;  // the bias gradient is the last row
    const int n = first_n + i % Tile::kColumns;
    if ((row < Tile::kRows && m >= p.rows) || n >= p.columns) continue;
    float sum = call.splits == 1 ? SumOfWarps<Tile>(memory, i) : 0.0F;
    for (int first = 0; first < call.splits && call.splits > 1; first += kAtOnce) {
      float parts[kAtOnce];  // all are loaded before the first is added
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j) {
        parts[j] = 0;
        if (first + j < call.splits) parts[j] = *part_at(first + j, i);
      }
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j) sum += parts[j];
    }
    sum = Finished(p, call.epilogue, m, n, sum);
    p.c[At(p.c_rows, m) + At(p.c_columns, n)] = sum;
    if (call.squares != nullptr) squares += static_cast<double>(sum) * static_cast<double>(sum);
  }
  if (call.squares != nullptr) {
    __shared__ double scratch[kWarp];
    squares = BlockSum(squares, scratch);
    const unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    if (threadIdx.x == 0) call.squares[block] = squares;
  }
  if (call.cluster > 1) cluster.sync();  // the tiles have been read
}

// Grid of a call with tiles of this size.
dim3 GemmGrid(const GemmBatch& call, int tile_rows, int tile_columns);

template <typename Tile, Fetch kFetch>
void LaunchTile(const GemmBatch& call, cudaStream_t stream) {
  using Memory = BlockMemory<Tile>;
  const int block_splits = call.splits / call.cluster;
  const std::size_t bytes =
      sizeof(float) * (Memory::kWork + (call.splits > 1 ? block_splits * Memory::kTile : 0));
  const auto kernel = GemmKernel<Tile, kFetch>;
  if (call.cluster > kPortableCluster) {
    CheckCuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1),
              "cluster size of a GEMM");
  }
  LaunchKernel("GEMM", kernel,
               {.grid = GemmGrid(call, Tile::kRows, Tile::kColumns),
                .block = kGemmThreads,
                .shared_bytes = bytes,
                .stream = stream,
                .order = call.order,
                .cluster = dim3(1, call.cluster, 1)},
               call);
}

// All kernels of one Precision; Tiles::Of<rows, columns, a, b> are its tiles.
template <Precision kPrecision, typename Tiles>
struct GemmKernels {
  static void Launch(const GemmBatch& call, cudaStream_t stream) {
    if (call.bytes) {
      using Tile = typename Tiles::template Of<32, 32, Contiguous::kReduction, Contiguous::kOutput>;
      return LaunchTile<Tile, Fetch::kPixels>(call, stream);
    }
    if (call.a_contiguous == Contiguous::kOutput)
      return Fetched<Contiguous::kOutput, Contiguous::kOutput>(call, stream);
    if (call.b_contiguous == Contiguous::kOutput)
      return Fetched<Contiguous::kReduction, Contiguous::kOutput>(call, stream);
    Fetched<Contiguous::kReduction, Contiguous::kReduction>(call, stream);
  }

 private:
  template <Contiguous kA, Contiguous kB>
  static void Fetched(const GemmBatch& call, cudaStream_t stream) {
    using Tile = typename Tiles::template Of<32, 32, kA, kB>;
    switch (FetchOf(call)) {
      case Fetch::kTables:
        return Whole<kA, kB, Fetch::kTables>(call, stream);
      case Fetch::kStrides:
        return Whole<kA, kB, Fetch::kStrides>(call, stream);
      case Fetch::kVectors:
        return LaunchTile<Tile, Fetch::kVectors>(call, stream);
      case Fetch::kAny:
      case Fetch::kPixels:
        return LaunchTile<Tile, Fetch::kAny>(call, stream);
    }
  }

  template <Contiguous kA, Contiguous kB, Fetch kFetch>
  static void Whole(const GemmBatch& call, cudaStream_t stream) {
    IfTile<kA, kB, kFetch, GemmTile::k64x32>(call, stream);
    IfTile<kA, kB, kFetch, GemmTile::k48x32>(call, stream);
    IfTile<kA, kB, kFetch, GemmTile::k32x32>(call, stream);
    IfTile<kA, kB, kFetch, GemmTile::k32x16>(call, stream);
  }

  template <Contiguous kA, Contiguous kB, Fetch kFetch, GemmTile kTile>
  static void IfTile(const GemmBatch& call, cudaStream_t stream) {
    if constexpr (HasTile(kPrecision, kTile)) {
      using Tile = typename Tiles::template Of<TileRows(kTile), TileColumns(kTile), kA, kB>;
      if (call.tile == kTile) LaunchTile<Tile, kFetch>(call, stream);
    }
  }
};

}  // namespace uper::cuda
