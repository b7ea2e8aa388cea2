#include <cooperative_groups.h>

#include <algorithm>

#include "uper/base/check.h"
#include "uper/nn/cuda/cuda_error.h"
#include "uper/nn/cuda/launch.cuh"
#include "uper/nn/cuda/product.h"
#include "uper/nn/cuda/product_operands.cuh"
#include "uper/nn/cuda/reductions.cuh"
#include "uper/nn/cuda/warp_tile.cuh"

namespace uper {
namespace {

constexpr int kStages = 3;  // chunks in flight
constexpr int kWarps = kProductWarps;
constexpr int kThreads = kProductThreads;
constexpr int kBlocksPerProcessor = 2;

// How operands are fetched.
enum class Fetch {
  kAny,      // one at a time
  kVectors,  // four at a time
  kPixels,   // A are pixels
  kTables,   // whole chunks, taps in tables
  kStrides,  // whole chunks, taps at strides
};

// A block computes a tile of 8 kTileM x 4 kTileN results.
template <int kTileM_, int kTileN_>
struct Shape {
  static constexpr int kTileM = kTileM_;  // results of one lane
  static constexpr int kTileN = kTileN_;
  static constexpr int kRows = kLanesM * kTileM;
  static constexpr int kColumns = kLanesN * kTileN;
};

__device__ float Finished(const Product& p, ProductFinish finish, int m, int n, float value) {
  switch (finish) {
    case ProductFinish::kBiasRelu:
      return fmaxf(0.0F, value + __ldg(p.bias + n));
    case ProductFinish::kMask:
      return __ldg(p.mask + At(p.mask_rows, m) + n) > 0 ? value : 0.0F;
    case ProductFinish::kStore:
      break;
  }
  return value;
}

template <typename S, Along kA, Along kB>
struct BlockMemory {
  static constexpr int kChunk = ProductChunk(kA);
  static constexpr int kFloatsA = Chunk<kA, S::kRows, kChunk>::kFloats;
  static constexpr int kFloatsB = Chunk<kB, S::kColumns, kChunk>::kFloats;
  static constexpr int kStage = kFloatsA + kFloatsB;
  // The warps' sums [warp][row][column], with room that spreads the rows over the banks, and the
  // row of sums [warp][column].
  static constexpr int kSumsStride = S::kColumns + 4;
  static constexpr int kColumnSums = kWarps * S::kRows * kSumsStride;
  static constexpr int kSums = kColumnSums + kWarps * S::kColumns;
  static constexpr int kWork = kStages * kStage > kSums ? kStages* kStage : kSums;
  // Behind it: the results of a split, [row][column] and the row of sums.
  static constexpr int kTile = (S::kRows + 1) * S::kColumns;
};

// What one thread of a block knows of a split's product.
template <typename S>
struct LaneSums {
  float sums[S::kTileM][S::kTileN] = {};
  float columns[S::kTileN] = {};
};

// Multiplies a stage; `columns`: with the row of sums.
template <typename S, Along kA, Along kB>
__device__ void MultiplyStage(const float* stage, int warp, int lane, bool columns,
                              LaneSums<S>& result) {
  constexpr int kChunk = BlockMemory<S, kA, kB>::kChunk;
  constexpr int kSteps = kChunk / kWarps;  // for one warp
#pragma unroll
  for (int step = 0; step < kSteps; step += 4) {
    float a[4][S::kTileM];
    float b[4][S::kTileN];
    LoadSteps<kA, S::kRows, kChunk, kLanesM>(stage, LaneM(lane), warp * kSteps + step, a);
    LoadSteps<kB, S::kColumns, kChunk, kLanesN>(stage + BlockMemory<S, kA, kB>::kFloatsA,
                                                LaneN(lane), warp * kSteps + step, b);
    if (kA == Along::kSide && columns) {
#pragma unroll
      for (int k = 0; k < 4; ++k) {
#pragma unroll
        for (int j = 0; j < S::kTileN; ++j) result.columns[j] += b[k][j];
      }
    }
#pragma unroll
    for (int k = 0; k < 4; ++k) {
#pragma unroll
      for (int i = 0; i < S::kTileM; ++i) {
#pragma unroll
        for (int j = 0; j < S::kTileN; ++j) {
          result.sums[i][j] = fmaf(a[k][i], b[k][j], result.sums[i][j]);
        }
      }
    }
  }
}

// Adds up the warps' sums in order, into a tile.
template <typename S, Along kA, Along kB>
__device__ void ReduceWarps(const LaneSums<S>& result, int warp, int lane, bool columns,
                            float* memory, float* tile) {
  using Memory = BlockMemory<S, kA, kB>;
#pragma unroll
  for (int i = 0; i < S::kTileM; ++i) {
    const int m = SideOfResult<kA, kLanesM>(LaneM(lane), i);
    float* row = memory + (warp * S::kRows + m) * Memory::kSumsStride;
#pragma unroll
    for (int j = 0; j < S::kTileN; j += 4) {
      const int n = SideOfResult<kB, kLanesN>(LaneN(lane), j);
      if constexpr (kB == Along::kSide) {  // four neighbours
        *reinterpret_cast<float4*>(row + n) = make_float4(
            result.sums[i][j], result.sums[i][j + 1], result.sums[i][j + 2], result.sums[i][j + 3]);
      } else {
#pragma unroll
        for (int e = 0; e < 4; ++e) row[n + e * kLanesN] = result.sums[i][j + e];
      }
    }
  }
  if (kA == Along::kSide && columns && LaneM(lane) == 0) {
#pragma unroll
    for (int j = 0; j < S::kTileN; ++j) {
      memory[Memory::kColumnSums + warp * S::kColumns + SideOfResult<kB, kLanesN>(LaneN(lane), j)] =
          result.columns[j];
    }
  }
  __syncthreads();
  constexpr int kResults = S::kRows * S::kColumns;
  const int end = kResults + (columns ? S::kColumns : 0);
  for (int i = static_cast<int>(threadIdx.x); i < end; i += kThreads) {
    const bool is_row = i < kResults;
    const float* from = memory + (is_row ? i / S::kColumns * Memory::kSumsStride + i % S::kColumns
                                         : Memory::kColumnSums + i - kResults);
    const int step = is_row ? S::kRows * Memory::kSumsStride : S::kColumns;
    float sum = 0;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) sum += from[w * step];
    tile[i] = sum;
  }
}

template <Fetch kFetch, Along kAlong, int kSide, int kLength>
struct LoaderOf {
  using Type = ChunkLoader<kAlong, kSide, kLength, kFetch != Fetch::kAny>;
};
template <Along kAlong, int kSide, int kLength>
struct LoaderOf<Fetch::kTables, kAlong, kSide, kLength> {
  using Type = WholeLoader<kAlong, kSide, kLength, true>;
};
template <Along kAlong, int kSide, int kLength>
struct LoaderOf<Fetch::kStrides, kAlong, kSide, kLength> {
  using Type = WholeLoader<kAlong, kSide, kLength, false>;
};

// Grid: tiles of rows, tiles of columns x blocks of a cluster, products. The blocks of a cluster
// compute the splits of one tile; then each adds up a part of the tile.
template <typename S, Along kA, Along kB, Fetch kFetch>
__global__ void __launch_bounds__(kThreads, kBlocksPerProcessor)
    ProductKernel(const __grid_constant__ ProductCall call) {
  using Memory = BlockMemory<S, kA, kB>;
  constexpr int kChunk = Memory::kChunk;
  constexpr bool kPixels = kFetch == Fetch::kPixels;
  extern __shared__ __align__(16) float memory[];
  float* tiles = memory + Memory::kWork;
  const Product& p = call.products[blockIdx.z];
  const int rank = static_cast<int>(blockIdx.y) % call.cluster;
  const int first_m = static_cast<int>(blockIdx.x) * S::kRows;
  const int first_n = static_cast<int>(blockIdx.y) / call.cluster * S::kColumns;
  if (first_m >= p.rows || first_n >= p.columns) return;  // the whole cluster

  typename LoaderOf<kFetch, kA, S::kRows, kChunk>::Type load_a(p.a, p.a_rows, p.a_taps, first_m,
                                                               p.rows);
  typename LoaderOf<kFetch, kB, S::kColumns, kChunk>::Type load_b(p.b, p.b_columns, p.b_taps,
                                                                  first_n, p.columns);
  PixelLoader<S::kRows, kChunk> pixels(p.a_bytes, p.a_scale, p.a_rows, p.a_taps, first_m,
                                       kPixels ? p.rows : 0);
  const int chunks = (p.length + kChunk - 1) / kChunk;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const bool columns = kA == Along::kSide && call.sums_row && blockIdx.x == 0;
  const int block_splits = call.splits / call.cluster;
  AwaitPredecessor();
  for (int i = 0; i < block_splits; ++i) {
    const int split = rank * block_splits + i;
    const int begin = static_cast<int>(static_cast<long long>(chunks) * split / call.splits);
    const int end = static_cast<int>(static_cast<long long>(chunks) * (split + 1) / call.splits);
    const auto next_stage = [&](float* stage) {
      return stage == memory + (kStages - 1) * Memory::kStage ? memory : stage + Memory::kStage;
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
        load_b.Start(stage + Memory::kFloatsA);
      }
      __pipeline_commit();
      expect(chunk + 1);
    };
    LaneSums<S> result;
    if (i > 0) __syncthreads();  // the sums before have been read
    expect(begin);
    float* to = memory;  // where the next chunk arrives
    for (int chunk = begin; chunk < begin + kStages - 1; ++chunk) {
      start(chunk, to);
      if (kPixels && chunk < end) pixels.Store(to);
      to = next_stage(to);
    }
    const float* from = memory;
    for (int chunk = begin; chunk < end; ++chunk) {
      __pipeline_wait_prior(kStages - 2);
      __syncthreads();
      start(chunk + kStages - 1, to);
      MultiplyStage<S, kA, kB>(from, warp, lane, columns, result);
      // That stage was read in the round before, which all have left.
      if (kPixels && chunk + kStages - 1 < end) pixels.Store(to);
      to = next_stage(to);
      from = next_stage(const_cast<float*>(from));
    }
    __pipeline_wait_prior(0);
    __syncthreads();
    ReduceWarps<S, kA, kB>(result, warp, lane, columns, memory, tiles + i * Memory::kTile);
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
  const int size = S::kRows * S::kColumns + (columns ? S::kColumns : 0);
  const int last = size * (rank + 1) / call.cluster;
  for (int i = size * rank / call.cluster + static_cast<int>(threadIdx.x); i < last;
       i += kThreads) {
    const int row = i / S::kColumns;
    const int m = row < S::kRows ? first_m + row : p.rows;  // the row of sums is the last
    const int n = first_n + i % S::kColumns;
    if ((row < S::kRows && m >= p.rows) || n >= p.columns) continue;
    float sum = 0;
    for (int first = 0; first < call.splits; first += kAtOnce) {
      float parts[kAtOnce];  // all on their way before the first is added
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j) {
        parts[j] = 0;
        if (first + j < call.splits) parts[j] = *part_at(first + j, i);
      }
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j) sum += parts[j];
    }
    sum = Finished(p, call.finish, m, n, sum);
    p.c[At(p.c_rows, m) + At(p.c_columns, n)] = sum;
    squares += static_cast<double>(sum) * static_cast<double>(sum);
  }
  if (call.squares != nullptr) {
    __shared__ double scratch[kWarp];
    squares = BlockSum(squares, scratch);
    const unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    if (threadIdx.x == 0) call.squares[block] = squares;
  }
  if (call.cluster > 1) cluster.sync();  // the tiles have been read
}

int Pieces(int total, int piece) { return (total + piece - 1) / piece; }

dim3 GridOf(const ProductCall& call, int tile_rows, int tile_columns) {
  int rows = 0;
  int columns = 0;
  for (int i = 0; i < call.count; ++i) {
    rows = std::max(rows, call.products[i].rows);
    columns = std::max(columns, call.products[i].columns);
  }
  return dim3(Pieces(rows, tile_rows), Pieces(columns, tile_columns) * call.cluster, call.count);
}

template <typename S, Along kA, Along kB, Fetch kFetch>
void Launch(const ProductCall& call, cudaStream_t stream) {
  using Memory = BlockMemory<S, kA, kB>;
  const int block_splits = call.splits / call.cluster;
  const std::size_t bytes = sizeof(float) * (Memory::kWork + block_splits * Memory::kTile);
  const auto kernel = ProductKernel<S, kA, kB, kFetch>;
  if (call.cluster > kPortableCluster) {
    CheckCuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1),
              "clusters of a matrix product");
  }
  LaunchKernel("matrix product", kernel,
               {.grid = GridOf(call, S::kRows, S::kColumns),
                .block = kThreads,
                .shared_bytes = bytes,
                .stream = stream,
                .follow = call.follow,
                .cluster = dim3(1, call.cluster, 1)},
               call);
}

template <Along kA, Along kB, Fetch kFetch>
void LaunchWhole(const ProductCall& call, cudaStream_t stream) {
  if (call.tile == ProductTile::k32x32) return Launch<Shape<4, 8>, kA, kB, kFetch>(call, stream);
  if (call.tile == ProductTile::k32x16) return Launch<Shape<4, 4>, kA, kB, kFetch>(call, stream);
  if constexpr (kA == Along::kLength) {
    if (call.tile == ProductTile::k56x32) return Launch<Shape<7, 8>, kA, kB, kFetch>(call, stream);
    if (call.tile == ProductTile::k48x32) return Launch<Shape<6, 8>, kA, kB, kFetch>(call, stream);
    if (call.tile == ProductTile::k40x32) return Launch<Shape<5, 8>, kA, kB, kFetch>(call, stream);
  }
}

// How the operands of all products can be fetched.
Fetch FetchOf(const ProductCall& call) {
  if (call.bytes) return Fetch::kPixels;
  if (!call.vectors) return Fetch::kAny;
  bool tables = true;
  bool strides = true;
  for (int i = 0; i < call.count; ++i) {
    const Product& p = call.products[i];
    if (p.length == 0 || p.length % ProductChunk(call.a_along) != 0) return Fetch::kVectors;
    tables = tables && p.a_taps.table != nullptr && p.b_taps.table != nullptr;
    strides = strides && p.a_taps.table == nullptr && p.b_taps.table == nullptr;
  }
  return tables ? Fetch::kTables : strides ? Fetch::kStrides : Fetch::kVectors;
}

template <Along kA, Along kB>
void LaunchFetch(const ProductCall& call, cudaStream_t stream) {
  switch (FetchOf(call)) {
    case Fetch::kTables:
      return LaunchWhole<kA, kB, Fetch::kTables>(call, stream);
    case Fetch::kStrides:
      return LaunchWhole<kA, kB, Fetch::kStrides>(call, stream);
    case Fetch::kVectors:
      return Launch<Shape<4, 8>, kA, kB, Fetch::kVectors>(call, stream);
    case Fetch::kAny:
    case Fetch::kPixels:
      return Launch<Shape<4, 8>, kA, kB, Fetch::kAny>(call, stream);
  }
}

}  // namespace

int TileRows(ProductTile tile) {
  switch (tile) {
    case ProductTile::k56x32:
      return 56;
    case ProductTile::k48x32:
      return 48;
    case ProductTile::k40x32:
      return 40;
    case ProductTile::k32x32:
    case ProductTile::k32x16:
      break;
  }
  return 32;
}

int TileColumns(ProductTile tile) { return tile == ProductTile::k32x16 ? 16 : 32; }

bool SuitsTile(const ProductCall& call, ProductTile tile) {
  if (tile == ProductTile::k32x32) return true;
  const Fetch fetch = FetchOf(call);
  return (fetch == Fetch::kTables || fetch == Fetch::kStrides) &&
         (tile == ProductTile::k32x16 || call.a_along == Along::kLength);
}

int ProductBlocks(const ProductCall& call) {
  const dim3 grid = GridOf(call, TileRows(call.tile), TileColumns(call.tile));
  return static_cast<int>(grid.x * grid.y * grid.z);
}

void LaunchProducts(const ProductCall& call, cudaStream_t stream) {
  UPER_CHECK(call.count >= 1 && call.count <= kMaxProducts, "products to do");
  UPER_CHECK(call.cluster >= 1 && call.cluster <= kMaxCluster && call.splits % call.cluster == 0,
             "splits go to the blocks of a cluster in equal numbers");
  UPER_CHECK(SuitsTile(call, call.tile), "there is no such tile for this kind of product");
  UPER_CHECK(!call.sums_row || call.a_along == Along::kSide, "a bias belongs to weights");
  if (call.bytes) {
    UPER_CHECK(call.a_along == Along::kLength && call.b_along == Along::kSide && call.vectors,
               "pixels are the input of a forward pass");
    Launch<Shape<4, 8>, Along::kLength, Along::kSide, Fetch::kPixels>(call, stream);
  } else if (call.a_along == Along::kLength && call.b_along == Along::kSide) {
    LaunchFetch<Along::kLength, Along::kSide>(call, stream);
  } else if (call.a_along == Along::kLength) {
    LaunchFetch<Along::kLength, Along::kLength>(call, stream);
  } else {
    UPER_CHECK(call.b_along == Along::kSide, "no layer needs this kind of product");
    LaunchFetch<Along::kSide, Along::kSide>(call, stream);
  }
}

}  // namespace uper
