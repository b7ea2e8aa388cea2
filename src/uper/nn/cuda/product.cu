#include <cuda_pipeline_primitives.h>

#include <algorithm>

#include "uper/base/check.h"
#include "uper/nn/cuda/cuda_error.h"
#include "uper/nn/cuda/launch.cuh"
#include "uper/nn/cuda/product.h"

namespace uper {
namespace {

constexpr int kChunk = 32;  // steps of the length that lie in shared memory at a time
constexpr int kStages = 3;  // chunks in flight
constexpr int kLanesM = 8;  // a warp is 8 x 4 lanes
constexpr int kLanesN = 4;
constexpr int kWarp = 32;

// A block computes a tile of 8 kTileM x 4 kTileN results; its warps share the length.
template <int kTileM_, int kTileN_, int kWarps_>
struct Shape {
  static constexpr int kTileM = kTileM_;  // results of one lane
  static constexpr int kTileN = kTileN_;
  static constexpr int kWarps = kWarps_;
  static constexpr int kRows = kLanesM * kTileM;
  static constexpr int kColumns = kLanesN * kTileN;
  static constexpr int kThreads = kWarps * kWarp;
  static constexpr int kSteps = kChunk / kWarps;  // of a chunk, for one warp
};

__device__ int At(const Offsets& offsets, int i) {
  return offsets.table != nullptr ? __ldg(offsets.table + i) : i * offsets.stride;
}

// An operand's chunk in shared memory: [side][length + 4] if its length lies along memory (the
// extra floats spread the rows over the banks), else [length][side].
template <Along kAlong, int kSide>
struct Chunk {
  static constexpr int kStride = kAlong == Along::kLength ? kChunk + 4 : kSide;
  static constexpr int kFloats = kAlong == Along::kLength ? kSide * kStride : kChunk * kStride;
};

// Starts the copy of one chunk; entries beyond the sides and the end become 0. `side_offsets` are
// kept by the thread: the sides it copies are the same in every chunk.
template <Along kAlong, int kSide, int kThreads, bool kVectors>
class ChunkLoader {
 public:
  __device__ ChunkLoader(const float* base, const Offsets& side, int first, int sides)
      : base_(base) {
#pragma unroll
    for (int i = 0; i < kCopies; ++i) {
      const int at = first + SideOf(i);
      const bool inside = at < sides && SideOf(i) < kSide;
      side_offsets_[i] = inside ? At(side, at) : -1;
    }
  }

  __device__ void Start(float* chunk, const Offsets& taps, int begin, int end) const {
#pragma unroll
    for (int i = 0; i < kCopies; ++i) {
      if (kRagged && SideOf(i) >= kSide) continue;
      const int k = StepOf(i);
      const bool inside = begin + k < end && side_offsets_[i] >= 0;
      const float* from = inside ? base_ + side_offsets_[i] + At(taps, begin + k) : base_;
      float* to = chunk + (kAlong == Along::kLength ? SideOf(i) * C::kStride + k
                                                    : k * C::kStride + SideOf(i));
      __pipeline_memcpy_async(to, from, kWidth * sizeof(float),
                              inside ? 0 : kWidth * sizeof(float));
    }
  }

 private:
  using C = Chunk<kAlong, kSide>;
  static constexpr int kWidth = kVectors ? 4 : 1;
  static constexpr int kPieces = kSide * kChunk / kWidth;
  static constexpr int kCopies = (kPieces + kThreads - 1) / kThreads;
  static constexpr bool kRagged = kPieces % kThreads != 0;

  __device__ static int Piece(int i) { return i * kThreads + static_cast<int>(threadIdx.x); }
  __device__ static int SideOf(int i) {
    if (kAlong == Along::kLength) return Piece(i) / (kChunk / kWidth);
    return Piece(i) % (kSide / kWidth) * kWidth + (Piece(i) >= kPieces ? kSide : 0);
  }
  __device__ static int StepOf(int i) {
    if (kAlong == Along::kLength) return Piece(i) % (kChunk / kWidth) * kWidth;
    return Piece(i) / (kSide / kWidth);
  }

  const float* base_;
  int side_offsets_[kCopies];
};

// The same for pixels, [side][length + 4]: they are fetched into registers, four at a time, and
// become floats on the way to shared memory.
template <int kSide, int kThreads>
class PixelLoader {
 public:
  __device__ PixelLoader(const std::uint8_t* base, float scale, const Offsets& side, int first,
                         int sides)
      : base_(base), scale_(scale) {
#pragma unroll
    for (int i = 0; i < kCopies; ++i) {
      const int at = first + SideOf(i);
      side_offsets_[i] = at < sides && SideOf(i) < kSide ? At(side, at) : -1;
    }
  }

  __device__ void Fetch(const Offsets& taps, int begin, int end) {
#pragma unroll
    for (int i = 0; i < kCopies; ++i) {
      const bool inside = begin + StepOf(i) < end && side_offsets_[i] >= 0;
      pixels_[i] = inside ? __ldg(reinterpret_cast<const unsigned*>(base_ + side_offsets_[i] +
                                                                    At(taps, begin + StepOf(i))))
                          : 0;
    }
  }

  __device__ void Store(float* chunk) const {
#pragma unroll
    for (int i = 0; i < kCopies; ++i) {
      if (SideOf(i) >= kSide) continue;
      *reinterpret_cast<float4*>(chunk + SideOf(i) * kStride + StepOf(i)) =
          make_float4(Value<0>(i), Value<1>(i), Value<2>(i), Value<3>(i));
    }
  }

 private:
  static constexpr int kStride = Chunk<Along::kLength, kSide>::kStride;
  static constexpr int kQuads = kChunk / 4;
  static constexpr int kCopies = (kSide * kQuads + kThreads - 1) / kThreads;

  __device__ static int SideOf(int i) {
    return (i * kThreads + static_cast<int>(threadIdx.x)) / kQuads;
  }
  __device__ static int StepOf(int i) {
    return (i * kThreads + static_cast<int>(threadIdx.x)) % kQuads * 4;
  }
  // A byte in the lowest place of the float 2^23 is that float plus the byte: cheaper than a
  // conversion.
  template <int kByte>
  __device__ float Value(int i) const {
    constexpr float kTwo23 = 8388608.0F;
    const unsigned bits = __byte_perm(pixels_[i], 0x4b000000U, 0x7540 + kByte);
    return scale_ * (__uint_as_float(bits) - kTwo23);
  }

  const std::uint8_t* base_;
  float scale_;
  int side_offsets_[kCopies];
  unsigned pixels_[kCopies];
};

// The side index of a lane's i-th result: neighbours read neighbouring banks.
template <Along kAlong, int kLanes>
__device__ int SideOfResult(int lane, int i) {
  return kAlong == Along::kLength ? lane + kLanes * i : (i / 4 * kLanes + lane) * 4 + i % 4;
}

// Four steps of an operand for one lane: values[step][i].
template <Along kAlong, int kSide, int kLanes, int kTile>
__device__ void LoadSteps(const float* chunk, int lane, int step, float (&values)[4][kTile]) {
  constexpr int kStride = Chunk<kAlong, kSide>::kStride;
  if constexpr (kAlong == Along::kLength) {
#pragma unroll
    for (int i = 0; i < kTile; ++i) {
      const float4 four =
          *reinterpret_cast<const float4*>(chunk + (lane + kLanes * i) * kStride + step);
      values[0][i] = four.x;
      values[1][i] = four.y;
      values[2][i] = four.z;
      values[3][i] = four.w;
    }
  } else {
#pragma unroll
    for (int k = 0; k < 4; ++k) {
#pragma unroll
      for (int i = 0; i < kTile; i += 4) {
        const float4 four = *reinterpret_cast<const float4*>(chunk + (step + k) * kStride +
                                                             (i / 4 * kLanes + lane) * 4);
        values[k][i] = four.x;
        values[k][i + 1] = four.y;
        values[k][i + 2] = four.z;
        values[k][i + 3] = four.w;
      }
    }
  }
}

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

// Rows of C with the row of sums.
__host__ __device__ int AllRows(const ProductCall& call, const Product& p) {
  return p.rows + (call.sums_row ? 1 : 0);
}

// Floats of the largest product.
__host__ __device__ long long PartSize(const ProductCall& call) {
  long long largest = 0;
  for (int i = 0; i < call.count; ++i) {
    const Product& p = call.products[i];
    const long long size = static_cast<long long>(AllRows(call, p)) * p.columns;
    largest = size > largest ? size : largest;
  }
  return largest;
}

template <typename S, Along kA, Along kB>
struct BlockMemory {
  static constexpr int kFloatsA = Chunk<kA, S::kRows>::kFloats;
  static constexpr int kFloatsB = Chunk<kB, S::kColumns>::kFloats;
  // The warps' sums [row][column], with room that spreads the rows over the banks.
  static constexpr int kSumsStride = S::kColumns + 4;
  static constexpr int kSums = S::kWarps * S::kRows * kSumsStride;
  static constexpr int kFloats = kStages * (kFloatsA + kFloatsB) > kSums
                                     ? kStages*(kFloatsA + kFloatsB)
                                     : kSums;
};

// Grid: tiles of rows, tiles of columns x splits, products.
template <typename S, Along kA, Along kB, bool kVectors, bool kBytes>
__global__ void __launch_bounds__(S::kThreads)
    ProductKernel(const __grid_constant__ ProductCall call, long long part_size) {
  using Memory = BlockMemory<S, kA, kB>;
  extern __shared__ __align__(16) float memory[];
  const Product& p = call.products[blockIdx.z];
  const int column_tiles = static_cast<int>(gridDim.y) / call.splits;
  const int split = static_cast<int>(blockIdx.y) / column_tiles;
  const int first_m = static_cast<int>(blockIdx.x) * S::kRows;
  const int first_n = static_cast<int>(blockIdx.y) % column_tiles * S::kColumns;
  if (first_m >= p.rows || first_n >= p.columns) return;
  const int chunks = (p.length + kChunk - 1) / kChunk;
  const int first_chunk = static_cast<int>(static_cast<long long>(chunks) * split / call.splits);
  const int last_chunk =
      static_cast<int>(static_cast<long long>(chunks) * (split + 1) / call.splits);

  const ChunkLoader<kA, S::kRows, S::kThreads, kVectors> load_a(p.a, p.a_rows, first_m, p.rows);
  const ChunkLoader<kB, S::kColumns, S::kThreads, kVectors> load_b(p.b, p.b_columns, first_n,
                                                                   p.columns);
  PixelLoader<S::kRows, S::kThreads> pixels(p.a_bytes, p.a_scale, p.a_rows, first_m,
                                            kBytes ? p.rows : 0);
  AwaitPredecessor();
  const auto stage_of = [&](int chunk) {
    return memory + chunk % kStages * (Memory::kFloatsA + Memory::kFloatsB);
  };
  const auto start = [&](int chunk) {
    if (chunk < last_chunk) {
      float* stage = stage_of(chunk);
      if constexpr (kBytes) {
        pixels.Fetch(p.a_taps, chunk * kChunk, p.length);
      } else {
        load_a.Start(stage, p.a_taps, chunk * kChunk, p.length);
      }
      load_b.Start(stage + Memory::kFloatsA, p.b_taps, chunk * kChunk, p.length);
    }
    __pipeline_commit();
  };

  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int lane_m = lane % kLanesM;
  const int lane_n = lane / kLanesM;
  float sums[S::kTileM][S::kTileN] = {};
  float column_sums[S::kTileN] = {};
  const bool sums_row = kA == Along::kSide && call.sums_row && blockIdx.x == 0;
  for (int i = 0; i < kStages - 1; ++i) {
    start(first_chunk + i);
    if (kBytes && first_chunk + i < last_chunk) pixels.Store(stage_of(first_chunk + i));
  }
  for (int chunk = first_chunk; chunk < last_chunk; ++chunk) {
    __pipeline_wait_prior(kStages - 2);
    __syncthreads();
    start(chunk + kStages - 1);
    const float* stage = stage_of(chunk);
#pragma unroll
    for (int step = 0; step < S::kSteps; step += 4) {
      float a[4][S::kTileM];
      float b[4][S::kTileN];
      LoadSteps<kA, S::kRows, kLanesM>(stage, lane_m, warp * S::kSteps + step, a);
      LoadSteps<kB, S::kColumns, kLanesN>(stage + Memory::kFloatsA, lane_n, warp * S::kSteps + step,
                                          b);
      if (kA == Along::kSide && sums_row) {
#pragma unroll
        for (int k = 0; k < 4; ++k) {
#pragma unroll
          for (int j = 0; j < S::kTileN; ++j) column_sums[j] += b[k][j];
        }
      }
#pragma unroll
      for (int k = 0; k < 4; ++k) {
#pragma unroll
        for (int i = 0; i < S::kTileM; ++i) {
#pragma unroll
          for (int j = 0; j < S::kTileN; ++j) sums[i][j] = fmaf(a[k][i], b[k][j], sums[i][j]);
        }
      }
    }
    // That stage was read in the round before, which all have left.
    if (kBytes && chunk + kStages - 1 < last_chunk) pixels.Store(stage_of(chunk + kStages - 1));
  }
  __pipeline_wait_prior(0);
  __syncthreads();

  // Adds up the warps' sums in order.
#pragma unroll
  for (int i = 0; i < S::kTileM; ++i) {
    const int m = SideOfResult<kA, kLanesM>(lane_m, i);
    float* row = memory + (warp * S::kRows + m) * Memory::kSumsStride;
#pragma unroll
    for (int j = 0; j < S::kTileN; j += 4) {
      const int n = SideOfResult<kB, kLanesN>(lane_n, j);
      if constexpr (kB == Along::kSide) {  // four neighbours
        *reinterpret_cast<float4*>(row + n) =
            make_float4(sums[i][j], sums[i][j + 1], sums[i][j + 2], sums[i][j + 3]);
      } else {
#pragma unroll
        for (int e = 0; e < 4; ++e) row[n + e * kLanesN] = sums[i][j + e];
      }
    }
  }
  __syncthreads();
  const auto put = [&](int m, int n, float sum) {
    if (call.splits > 1) {  // [product, split, row, column]
      const long long part = static_cast<long long>(blockIdx.z) * call.splits + split;
      call.workspace[part * part_size + static_cast<long long>(m) * p.columns + n] = sum;
    } else {
      p.c[At(p.c_rows, m) + At(p.c_columns, n)] = Finished(p, call.finish, m, n, sum);
    }
  };
  for (int i = static_cast<int>(threadIdx.x); i < S::kRows * S::kColumns; i += S::kThreads) {
    const int m = first_m + i / S::kColumns;
    const int n = first_n + i % S::kColumns;
    if (m >= p.rows || n >= p.columns) continue;
    const float* from = memory + i / S::kColumns * Memory::kSumsStride + i % S::kColumns;
    float sum = 0;
#pragma unroll
    for (int w = 0; w < S::kWarps; ++w) sum += from[w * S::kRows * Memory::kSumsStride];
    put(m, n, sum);
  }
  if (kA != Along::kSide || !sums_row) return;
  __syncthreads();
#pragma unroll
  for (int j = 0; j < S::kTileN; ++j) {
    const int n = SideOfResult<kB, kLanesN>(lane_n, j);
    if (lane_m == 0) memory[warp * S::kColumns + n] = column_sums[j];
  }
  __syncthreads();
  const int n = static_cast<int>(threadIdx.x);
  if (n >= S::kColumns || first_n + n >= p.columns) return;
  float sum = 0;
#pragma unroll
  for (int w = 0; w < S::kWarps; ++w) sum += memory[w * S::kColumns + n];
  put(p.rows, first_n + n, sum);
}

// Adds up the splits in order.
__global__ void FinishKernel(const __grid_constant__ ProductCall call, long long part_size) {
  const Product& p = call.products[blockIdx.y];
  const long long size = static_cast<long long>(AllRows(call, p)) * p.columns;
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  AwaitPredecessor();
  if (i >= size) return;
  const float* parts = call.workspace + blockIdx.y * call.splits * part_size + i;
  float sum = 0;
#pragma unroll 8
  for (int split = 0; split < call.splits; ++split) sum += parts[split * part_size];
  const int m = static_cast<int>(i / p.columns);
  const int n = static_cast<int>(i % p.columns);
  p.c[At(p.c_rows, m) + At(p.c_columns, n)] = Finished(p, call.finish, m, n, sum);
}

int Pieces(int total, int piece) { return (total + piece - 1) / piece; }

template <typename S, Along kA, Along kB, bool kVectors, bool kBytes>
void Launch(const ProductCall& call, cudaStream_t stream) {
  int rows = 0;
  int columns = 0;
  for (int i = 0; i < call.count; ++i) {
    rows = std::max(rows, call.products[i].rows);
    columns = std::max(columns, call.products[i].columns);
  }
  const dim3 grid(Pieces(rows, S::kRows), Pieces(columns, S::kColumns) * call.splits, call.count);
  constexpr int kMemory = BlockMemory<S, kA, kB>::kFloats * sizeof(float);
  const auto kernel = ProductKernel<S, kA, kB, kVectors, kBytes>;
  CheckCuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kMemory),
            "shared memory of a matrix product");
  LaunchKernel("matrix product", kernel,
               {.grid = grid,
                .block = S::kThreads,
                .shared_bytes = kMemory,
                .stream = stream,
                .follow = call.follow},
               call, PartSize(call));
}

template <Along kA, Along kB, bool kBytes>
void LaunchVectors(const ProductCall& call, cudaStream_t stream) {
  switch (call.tile) {
    case ProductTile::k64x32By4:
      return Launch<Shape<8, 8, 4>, kA, kB, true, kBytes>(call, stream);
    case ProductTile::k64x32By8:
      return Launch<Shape<8, 8, 8>, kA, kB, true, kBytes>(call, stream);
    case ProductTile::k32x32By4:
      return Launch<Shape<4, 8, 4>, kA, kB, true, kBytes>(call, stream);
    case ProductTile::k32x32By8:
      return Launch<Shape<4, 8, 8>, kA, kB, true, kBytes>(call, stream);
    case ProductTile::k32x16By8:
      return Launch<Shape<4, 4, 8>, kA, kB, true, kBytes>(call, stream);
  }
}

template <Along kA, Along kB>
void LaunchTile(const ProductCall& call, cudaStream_t stream) {
  if (call.vectors) return LaunchVectors<kA, kB, false>(call, stream);
  Launch<Shape<4, 8, 8>, kA, kB, false, false>(call, stream);
}

}  // namespace

std::size_t WorkspaceSize(const ProductCall& call) {
  if (call.splits == 1) return 0;
  return std::size_t{1} * call.count * call.splits * PartSize(call);
}

void LaunchProducts(const ProductCall& call, cudaStream_t stream) {
  UPER_CHECK(call.count >= 1 && call.count <= kMaxProducts && call.splits >= 1, "products to do");
  UPER_CHECK(!call.sums_row || call.a_along == Along::kSide, "a bias belongs to weights");
  if (call.bytes) {
    UPER_CHECK(call.a_along == Along::kLength && call.b_along == Along::kSide && call.vectors,
               "pixels are the input of a forward pass");
    LaunchVectors<Along::kLength, Along::kSide, true>(call, stream);
  } else if (call.a_along == Along::kLength && call.b_along == Along::kSide) {
    LaunchTile<Along::kLength, Along::kSide>(call, stream);
  } else if (call.a_along == Along::kLength) {
    LaunchTile<Along::kLength, Along::kLength>(call, stream);
  } else {
    UPER_CHECK(call.b_along == Along::kSide, "no layer needs this kind of product");
    LaunchTile<Along::kSide, Along::kSide>(call, stream);
  }
  if (call.splits == 1) return;
  constexpr int kThreads = 256;
  const long long size = PartSize(call);
  const dim3 grid(static_cast<unsigned>((size + kThreads - 1) / kThreads), call.count);
  LaunchKernel("sum of products", FinishKernel,
               {.grid = grid, .block = kThreads, .stream = stream, .follow = Follow::kOverlap},
               call, size);
}

}  // namespace uper
