#include <cuda_pipeline_primitives.h>

#include <algorithm>

#include "uper/base/check.h"
#include "uper/nn/cuda/launch.cuh"
#include "uper/nn/cuda/picture_product.h"
#include "uper/nn/cuda/warp_tile.cuh"

namespace uper {
namespace {

constexpr int kWarp = 32;
constexpr int kWarps = 8;  // they share taps and channels
constexpr int kThreads = kWarps * kWarp;
constexpr int kPad = 4;                     // floats that spread pixels and columns over the banks
constexpr int kLargestShared = 227 * 1024;  // of a block

__device__ int At(const Affine& offset, int row, int column) {
  return offset.first + row * offset.row + column * offset.column;
}

// Divides small numbers with a multiplication: where number * divisor < kSmall.
constexpr int kSmall = 1 << 16;
struct SmallDivision {
  int divisor;
  unsigned inverse;

  __device__ explicit SmallDivision(int by)
      : divisor(by), inverse((65535U + static_cast<unsigned>(by)) / static_cast<unsigned>(by)) {}
  __device__ int Quotient(int number) const {
    return static_cast<int>(static_cast<unsigned>(number) * inverse >> 16);
  }
  // The offset of the number-th of rows of `divisor` columns.
  __device__ int At(const Affine& offset, int number) const {
    const int row = Quotient(number);
    return uper::At(offset, row, number - row * divisor);
  }
};

// What a block computes: at most kRows positions of one picture, and kColumns columns. A lane has
// kTileM x kTileN of them.
template <int kTileM_, int kColumns_, Along kB_>
struct Tile {
  static constexpr int kTileM = kTileM_;
  static constexpr int kColumns = kColumns_;
  static constexpr Along kB = kB_;
  static constexpr int kRows = kTileM * kLanesM;
  static constexpr int kTileN = kColumns / kLanesN;
  static constexpr int kSumsStride = kColumns + 4;
  static constexpr int kWarpSums = kRows * kSumsStride;

  // In shared memory: a picture [pixel][channel], then weights, [tap, channel][column] or
  // [tap, column][channel]. The sums of the warps take their place.
  static int Floats(const PictureCall& call, int taps) {
    const int row = call.channels + kPad;
    const int weights =
        kB == Along::kSide ? taps * call.channels * kColumns : taps * kColumns * row;
    return std::max(call.pixels * row + weights, kWarps * kWarpSums);
  }
};

// Which groups of four floats of rows a thread copies: every kThreads-th.
struct RowWalk {
  int row, quad;            // the first
  int row_step, quad_step;  // to the next
  int quads;                // of a row

  __device__ explicit RowWalk(int floats) : quads(floats / 4) {
    const SmallDivision by(quads);
    row = by.Quotient(static_cast<int>(threadIdx.x));
    quad = static_cast<int>(threadIdx.x) - row * quads;
    row_step = by.Quotient(kThreads);
    quad_step = kThreads - row_step * quads;
  }
};

// Rows at from + row * step, to rows `pitch` apart.
__device__ void StartRows(RowWalk at, const float* from, int rows, int step, float* to, int pitch) {
  while (at.row < rows) {
    __pipeline_memcpy_async(to + at.row * pitch + 4 * at.quad, from + at.row * step + 4 * at.quad,
                            4 * sizeof(float));
    at.row += at.row_step;
    at.quad += at.quad_step;
    if (at.quad >= at.quads) {
      at.quad -= at.quads;
      ++at.row;
    }
  }
}

// Weights of the taps from `begin` to `end`.
template <typename Tile>
__device__ void StartWeights(const PictureCall& call, const PictureProduct& p, int begin, int end,
                             float* weights) {
  const int first_n = static_cast<int>(blockIdx.x) * Tile::kColumns;
  if constexpr (Tile::kB == Along::kSide) {  // the taps are one piece
    const int row = begin * call.channels;
    StartRows(RowWalk(Tile::kColumns), p.b + row * call.columns + first_n,
              (end - begin) * call.channels, call.columns, weights + row * Tile::kColumns,
              Tile::kColumns);
  } else {
    const RowWalk walk(call.channels);
    const SmallDivision by_columns(p.tap_columns);
    const int pitch = call.channels + kPad;
    for (int tap = begin; tap < end; ++tap) {
      const float* b = p.b + by_columns.At(p.b_taps, tap);
      StartRows(walk, b + first_n * call.channels, Tile::kColumns, call.channels,
                weights + tap * Tile::kColumns * pitch, pitch);
    }
  }
}

// The column of a lane's j-th result.
template <typename Tile>
__device__ int ColumnOf(int lane, int j) {
  return Tile::kB == Along::kSide ? (j / 4 * kLanesN + LaneN(lane)) * 4 + j % 4
                                  : LaneN(lane) + kLanesN * j;
}

// values[step][j]: four steps of the lane's columns.
template <typename Tile>
__device__ void LoadWeights(const float* b, int pitch, int lane, float (&values)[4][Tile::kTileN]) {
  if constexpr (Tile::kB == Along::kSide) {
#pragma unroll
    for (int k = 0; k < 4; ++k) {
#pragma unroll
      for (int j = 0; j < Tile::kTileN; j += 4) {
        const float4 four =
            *reinterpret_cast<const float4*>(b + k * Tile::kColumns + ColumnOf<Tile>(lane, j));
        values[k][j] = four.x;
        values[k][j + 1] = four.y;
        values[k][j + 2] = four.z;
        values[k][j + 3] = four.w;
      }
    }
  } else {
#pragma unroll
    for (int j = 0; j < Tile::kTileN; ++j) {
      const float4 four = *reinterpret_cast<const float4*>(b + ColumnOf<Tile>(lane, j) * pitch);
      values[0][j] = four.x;
      values[1][j] = four.y;
      values[2][j] = four.z;
      values[3][j] = four.w;
    }
  }
}

// sums += four channels of the windows * their weights.
template <typename Tile>
__device__ void MultiplyFour(const float* const (&windows)[Tile::kTileM], const float* weights,
                             int pitch, int lane, float (&sums)[Tile::kTileM][Tile::kTileN]) {
  float4 a[Tile::kTileM];
  float w[4][Tile::kTileN];
#pragma unroll
  for (int i = 0; i < Tile::kTileM; ++i) {
    a[i] = *reinterpret_cast<const float4*>(windows[i]);
  }
  LoadWeights<Tile>(weights, pitch, lane, w);
#pragma unroll
  for (int i = 0; i < Tile::kTileM; ++i) {
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const float value = k == 0 ? a[i].x : k == 1 ? a[i].y : k == 2 ? a[i].z : a[i].w;
#pragma unroll
      for (int j = 0; j < Tile::kTileN; ++j) sums[i][j] = fmaf(value, w[k][j], sums[i][j]);
    }
  }
}

// Where the windows of a lane's positions begin.
template <typename Tile>
__device__ void FindWindows(const PictureProduct& p, const float* picture, int pitch, int lane,
                            const float* (&windows)[Tile::kTileM]) {
  const SmallDivision by_width(p.width);
#pragma unroll
  for (int i = 0; i < Tile::kTileM; ++i) {
    const int m = min(LaneM(lane) + kLanesM * i, p.height * p.width - 1);
    windows[i] = picture + by_width.At(p.windows, m) * pitch;
  }
}

// A warp's share of the taps from `first` to `last` and their channels, four channels at a time, in
// order. `passed`: floats that the windows have been moved on.
template <typename Tile>
__device__ void Multiply(const PictureCall& call, const PictureProduct& p, int first, int last,
                         const float* weights, const float* (&windows)[Tile::kTileM], int& passed,
                         float (&sums)[Tile::kTileM][Tile::kTileN]) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int pitch = call.channels + kPad;
  const int quads = call.channels / 4;
  const int total = (last - first) * quads;
  const int end = first * quads + total * (warp + 1) / kWarps;
  int at = first * quads + total * warp / kWarps;
  const SmallDivision by_columns(p.tap_columns);
  for (int tap = SmallDivision(quads).Quotient(at); at < end; ++tap) {
    const int quad = at - tap * quads;
    const int to = by_columns.At(p.taps, tap) * pitch + 4 * quad;
#pragma unroll
    for (int i = 0; i < Tile::kTileM; ++i) windows[i] += to - passed;
    const float* b = weights + (Tile::kB == Along::kSide ? 4 * at * Tile::kColumns
                                                         : tap * Tile::kColumns * pitch + 4 * quad);
    const int count = min(end - at, quads - quad);
#pragma unroll 2
    for (int i = 0; i < count; ++i) {
      MultiplyFour<Tile>(windows, b, pitch, lane, sums);
#pragma unroll
      for (int m = 0; m < Tile::kTileM; ++m) windows[m] += 4;
      b += Tile::kB == Along::kSide ? 4 * Tile::kColumns : 4;
    }
    at += count;
    passed = to + 4 * count;
  }
}

// To sums [position][kSumsStride] of the warp.
template <typename Tile>
__device__ void StoreSums(const float (&result)[Tile::kTileM][Tile::kTileN], int lane,
                          float* sums) {
#pragma unroll
  for (int i = 0; i < Tile::kTileM; ++i) {
    float* row = sums + (LaneM(lane) + kLanesM * i) * Tile::kSumsStride;
    if constexpr (Tile::kB == Along::kSide) {
#pragma unroll
      for (int j = 0; j < Tile::kTileN; j += 4) {
        *reinterpret_cast<float4*>(row + ColumnOf<Tile>(lane, j)) =
            make_float4(result[i][j], result[i][j + 1], result[i][j + 2], result[i][j + 3]);
      }
    } else {
#pragma unroll
      for (int j = 0; j < Tile::kTileN; ++j) row[ColumnOf<Tile>(lane, j)] = result[i][j];
    }
  }
}

__device__ float Masked(float mask, float value) { return mask > 0 ? value : 0.0F; }

// `mask`: of the column n and those behind it.
__device__ float4 Finished(const PictureCall& call, const PictureProduct& p, const float* mask,
                           int n, float4 sum) {
  if (call.finish == ProductFinish::kBiasRelu) {
    const float4 bias = __ldg(reinterpret_cast<const float4*>(p.bias + n));
    return make_float4(fmaxf(0.0F, sum.x + bias.x), fmaxf(0.0F, sum.y + bias.y),
                       fmaxf(0.0F, sum.z + bias.z), fmaxf(0.0F, sum.w + bias.w));
  }
  if (call.finish == ProductFinish::kMask) {
    const float4 masks = __ldg(reinterpret_cast<const float4*>(mask));
    return make_float4(Masked(masks.x, sum.x), Masked(masks.y, sum.y), Masked(masks.z, sum.z),
                       Masked(masks.w, sum.w));
  }
  return sum;
}

// Adds the sums of the warps, in order, and stores the results.
template <typename Tile>
__device__ void Finish(const PictureCall& call, const PictureProduct& p, const float* sums) {
  constexpr int kQuads = Tile::kColumns / 4;
  const int first_n = static_cast<int>(blockIdx.x) * Tile::kColumns;
  const int picture = static_cast<int>(blockIdx.y);
  const SmallDivision by_width(p.width);
  const float* mask = p.mask + picture * call.mask_picture + first_n;
  float* c = p.c + picture * call.c_picture + first_n;
  const int results = p.height * p.width * kQuads;
  for (int i = static_cast<int>(threadIdx.x); i < results; i += kThreads) {
    const int m = i / kQuads;
    const int n = i % kQuads * 4;
    const float* from = sums + m * Tile::kSumsStride + n;
    float4 sum = *reinterpret_cast<const float4*>(from);
#pragma unroll
    for (int w = 1; w < kWarps; ++w) {
      const float4 part = *reinterpret_cast<const float4*>(from + w * Tile::kWarpSums);
      sum.x += part.x;
      sum.y += part.y;
      sum.z += part.z;
      sum.w += part.w;
    }
    *reinterpret_cast<float4*>(c + by_width.At(p.c_at, m) + n) =
        Finished(call, p, mask + by_width.At(p.mask_at, m) + n, first_n + n, sum);
  }
}

// Grid: groups of columns, pictures, products. The weights of an update do not change while its
// kernels run, so they need not wait for the kernel before. Those of the second half of the taps
// come while the first is at work.
template <typename Tile>
__global__ void __launch_bounds__(kThreads, 1)
    PictureKernel(const __grid_constant__ PictureCall call) {
  extern __shared__ __align__(16) float memory[];
  const PictureProduct& p = call.products[blockIdx.z];
  const int pitch = call.channels + kPad;
  const int taps = p.tap_rows * p.tap_columns;
  const int half = (taps + 1) / 2;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  float* weights = memory + call.pixels * pitch;
  StartWeights<Tile>(call, p, 0, half, weights);
  const float* windows[Tile::kTileM];
  FindWindows<Tile>(p, memory, pitch, lane, windows);
  AwaitPredecessor();
  const int picture = static_cast<int>(blockIdx.y) * call.pixels * call.channels;
  StartRows(RowWalk(call.channels), p.a + picture, call.pixels, call.channels, memory, pitch);
  __pipeline_commit();
  StartWeights<Tile>(call, p, half, taps, weights);
  __pipeline_commit();
  float sums[Tile::kTileM][Tile::kTileN] = {};
  int passed = 0;
#pragma unroll 1
  for (int first = 0; first < taps; first += half) {
    if (first == 0) {
      __pipeline_wait_prior(1);
    } else {
      __pipeline_wait_prior(0);
    }
    __syncthreads();
    Multiply<Tile>(call, p, first, min(first + half, taps), weights, windows, passed, sums);
  }
  __pipeline_wait_prior(0);
  __syncthreads();  // the sums take the place of picture and weights
  StoreSums<Tile>(sums, lane, memory + warp * Tile::kWarpSums);
  __syncthreads();
  Finish<Tile>(call, p, memory);
}

int MostPositions(const PictureCall& call) {
  int most = 0;
  for (int i = 0; i < call.count; ++i) {
    most = std::max(most, call.products[i].height * call.products[i].width);
  }
  return most;
}

int MostTaps(const PictureCall& call) {
  int most = 0;
  for (int i = 0; i < call.count; ++i) {
    most = std::max(most, call.products[i].tap_rows * call.products[i].tap_columns);
  }
  return most;
}

// What the kernel divides by groups of four channels: numbers of threads, and of groups of all
// taps.
bool HasSmallDivisions(const PictureCall& call) {
  const long long quads = call.channels / 4;
  return kThreads * quads < kSmall && MostTaps(call) * quads * quads < kSmall;
}

template <typename Tile>
void Launch(const PictureCall& call, cudaStream_t stream) {
  LaunchKernel("convolution of pictures", PictureKernel<Tile>,
               {.grid = dim3(call.columns / Tile::kColumns, call.pictures, call.count),
                .block = kThreads,
                .shared_bytes = sizeof(float) * Tile::Floats(call, MostTaps(call)),
                .stream = stream,
                .follow = call.follow},
               call);
}

// Calls visit(Tile) for the tile of the call.
template <int kTileM, typename Visit>
auto WithColumns(const PictureCall& call, const Visit& visit) {
  // Blocks of 16 columns where those of 32 would leave half of a large GPU without work.
  constexpr int kMultiprocessors = 132;
  const bool narrow = call.columns % 32 != 0 ||
                      call.columns / 32 * call.pictures * call.count <= kMultiprocessors / 2;
  if (call.b_along == Along::kSide) {
    return narrow ? visit(Tile<kTileM, 16, Along::kSide>())
                  : visit(Tile<kTileM, 32, Along::kSide>());
  }
  return narrow ? visit(Tile<kTileM, 16, Along::kLength>())
                : visit(Tile<kTileM, 32, Along::kLength>());
}

constexpr int kTileRows[] = {7 * kLanesM, 11 * kLanesM, 13 * kLanesM};

template <typename Visit>
auto WithTile(const PictureCall& call, const Visit& visit) {
  const int positions = MostPositions(call);
  if (positions <= kTileRows[0]) return WithColumns<7>(call, visit);
  if (positions <= kTileRows[1]) return WithColumns<11>(call, visit);
  return WithColumns<13>(call, visit);
}

}  // namespace

bool SuitsPictures(const PictureCall& call) {
  if (call.channels % 4 != 0 || call.columns % 16 != 0) return false;
  if (call.count > PictureCall::kMaxProducts || MostPositions(call) > kTileRows[2]) return false;
  if (!HasSmallDivisions(call)) return false;
  return WithTile(call, [&](auto tile) {
    return sizeof(float) * tile.Floats(call, MostTaps(call)) <= kLargestShared;
  });
}

void LaunchPictures(const PictureCall& call, cudaStream_t stream) {
  UPER_CHECK(SuitsPictures(call), "pictures of another kind");
  WithTile(call, [&](auto tile) { Launch<decltype(tile)>(call, stream); });
}

}  // namespace uper
