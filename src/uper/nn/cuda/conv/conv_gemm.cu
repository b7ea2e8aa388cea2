#include <cuda_pipeline_primitives.h>

#include <algorithm>

#include "uper/base/check.h"
#include "uper/nn/cuda/conv/conv_gemm.h"
#include "uper/nn/cuda/ptx/double_mma.cuh"
#include "uper/nn/cuda/ptx/relu.cuh"
#include "uper/nn/cuda/runtime/launch.cuh"

namespace uper::cuda {
namespace {

constexpr int kWarp = 32;
constexpr int kWarps = 8;  // they split taps and channels
constexpr int kThreads = kWarps * kWarp;
constexpr int kWarpColumns = 16;
constexpr int kLargestShared = 227 * 1024;  // per block

__device__ int At(const Affine& offset, int row, int column) {
  return offset.first + row * offset.row + column * offset.column;
}

// Divides small numbers by multiplication. REQUIRES: number * divisor < kSmall.
constexpr int kSmall = 1 << 16;
struct SmallDivision {
  int divisor;
  unsigned inverse;

  __device__ explicit SmallDivision(int by)
      : divisor(by), inverse((65535U + static_cast<unsigned>(by)) / static_cast<unsigned>(by)) {}
  __device__ int Quotient(int number) const {
    return static_cast<int>(static_cast<unsigned>(number) * inverse >> 16);
  }
  // The offset of item `number` in rows of `divisor` columns.
  __device__ int At(const Affine& offset, int number) const {
    const int row = Quotient(number);
    return cuda::At(offset, row, number - row * divisor);
  }
};

// Pitch in floats of items in shared memory that have `floats` floats and are read `step` items
// apart. Lanes read 8 floats of each of 4 items, two per lane; these lie in different banks.
constexpr int PitchOf(int floats, int step) {
  constexpr int kBanks = 32;
  for (int pad = 0; pad < kBanks; pad += 4) {
    const int apart = (floats + pad) * step % kBanks;
    if (apart == 8 || apart == kBanks - 8) return floats + pad;
  }
  return floats + 4;
}

// Pitch of pixels, and of weight columns with contiguous channels.
struct Pitches {
  int pixel, column;

  explicit Pitches(const ConvGemmBatch& call)
      : pixel(PitchOf(call.channels, call.gemms[0].windows.column)),
        column(PitchOf(call.channels, 1)) {}
};

// A block computes at most kRows positions of one image, and kColumns columns. A warp
// computes 16 columns at half of the positions, 8 positions per tile. Warps split channels and
// taps, or only channels. So a warp needs few registers and leaves room for kernels on the critical
// path.
template <int kTiles_, int kColumns_, Contiguous kB_, bool kByChannels_ = false>
struct Tile {
  static constexpr int kTiles = kTiles_;
  static constexpr int kColumns = kColumns_;
  static constexpr Contiguous kB = kB_;
  static constexpr bool kByChannels = kByChannels_;
  static constexpr int kRows = 8 * kTiles;
  static constexpr int kWarpTiles = (kTiles + 1) / 2;  // the second half may have one tile less
  static constexpr int kSharers = kWarps / 2 * kWarpColumns / kColumns;
  static constexpr int kWeightPitch = kColumns + 4;  // of channels, if columns are contiguous
  static constexpr int kSumsPitch = kColumns + 4;    // of positions
  static constexpr int kSums = kRows * kSumsPitch;   // of the warps that have one share

  // Shared memory: an image [pixel][channel], then weights, [tap, channel][column] or [tap,
  // column][channel]. Later the sums of the warps take their place.
  static int Floats(const ConvGemmBatch& call, int taps) {
    const Pitches pitch(call);
    const int weights = kB == Contiguous::kOutput ? taps * call.channels * kWeightPitch
                                                  : taps * kColumns * pitch.column;
    return std::max(call.pixels * pitch.pixel + weights, kSharers * kSums);
  }
};

// Selects the groups of four floats that a thread copies: every kThreads-th group.
struct RowWalk {
  int row, quad;            // the first group
  int row_step, quad_step;  // from one group to the next
  int quads;                // per row

  __device__ explicit RowWalk(int floats) : quads(floats / 4) {
    const SmallDivision by(quads);
    row = by.Quotient(static_cast<int>(threadIdx.x));
    quad = static_cast<int>(threadIdx.x) - row * quads;
    row_step = by.Quotient(kThreads);
    quad_step = kThreads - row_step * quads;
  }
};

// Copies the rows at from + row * step to rows that are `pitch` apart.
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

// Copies the weights of the taps from `begin` to `end`.
template <typename Tile>
__device__ void StartWeights(const ConvGemmBatch& call, const ConvGemm& p, int pitch, int begin,
                             int end, float* weights) {
  const int first_n = static_cast<int>(blockIdx.x) * Tile::kColumns;
  if constexpr (Tile::kB == Contiguous::kOutput) {  // all taps are contiguous
    const int row = begin * call.channels;
    StartRows(RowWalk(Tile::kColumns), p.b + row * call.columns + first_n,
              (end - begin) * call.channels, call.columns, weights + row * Tile::kWeightPitch,
              Tile::kWeightPitch);
  } else {
    const RowWalk walk(call.channels);
    const SmallDivision by_columns(p.tap_columns);
    for (int tap = begin; tap < end; ++tap) {
      const float* b = p.b + by_columns.At(p.b_taps, tap);
      StartRows(walk, b + first_n * call.channels, Tile::kColumns, call.channels,
                weights + tap * Tile::kColumns * pitch, pitch);
    }
  }
}

// Which results a warp computes, and its share of the sums.
template <typename Tile>
struct WarpPart {
  int sharer, column, first_tile;
  bool is_short;  // one tile less than other warps

  __device__ WarpPart() {
    const int warp = static_cast<int>(threadIdx.x) / kWarp;
    sharer = warp % Tile::kSharers;
    const int half = warp / Tile::kSharers % 2;
    column = warp / Tile::kSharers / 2 * kWarpColumns;
    first_tile = half * Tile::kWarpTiles;
    is_short = Tile::kTiles % 2 != 0 && half == 1;
  }
};

// A lane's weights of two channels and two columns: [channel][column, and the eighth column after
// it]. `b`: address of the first weight.
template <typename Tile>
__device__ void LoadWeights(const float* b, int pitch, double (&w)[2][2]) {
  if constexpr (Tile::kB == Contiguous::kOutput) {
    w[0][0] = b[0];
    w[0][1] = b[8];
    w[1][0] = b[Tile::kWeightPitch];
    w[1][1] = b[Tile::kWeightPitch + 8];
  } else {
    const float2 low = *reinterpret_cast<const float2*>(b);
    const float2 high = *reinterpret_cast<const float2*>(b + 8 * pitch);
    w[0][0] = low.x;
    w[0][1] = high.x;
    w[1][0] = low.y;
    w[1][1] = high.y;
  }
}

// Where the windows of a lane's positions begin, at its channels.
template <typename Tile>
__device__ void FindWindows(const ConvGemm& p, const float* image, int pitch,
                            const WarpPart<Tile>& part, int lane,
                            const float* (&windows)[Tile::kWarpTiles]) {
  const SmallDivision by_width(p.width);
#pragma unroll
  for (int i = 0; i < Tile::kWarpTiles; ++i) {
    const int m = min(8 * (part.first_tile + i) + MmaGroup(lane), p.height * p.width - 1);
    windows[i] = image + by_width.At(p.windows, m) * pitch + 2 * MmaPlace(lane);
  }
}

// Groups of eight channels that a warp handles, counted over taps: from begin to end, and within a
// tap those below `most`.
struct EightsOfWarp {
  int begin, end;
  int most;
  int skip;  // from the last group of a tap to the first of the next

  template <typename Tile>
  __device__ static EightsOfWarp Of(const WarpPart<Tile>& part, int eights, int first, int last) {
    const auto cut = [](int total, int sharer) { return total * sharer / Tile::kSharers; };
    if constexpr (Tile::kByChannels) {
      const int from = cut(eights, part.sharer);
      const int to = cut(eights, part.sharer + 1);
      return {first * eights + from, last * eights, to, eights - (to - from)};
    } else {
      const int total = (last - first) * eights;
      return {first * eights + cut(total, part.sharer),
              first * eights + cut(total, part.sharer + 1), eights, 0};
    }
  }
};

// Adds a warp's share of the taps from `first` to `last`. `passed`: floats that the windows have
// been advanced by. sums [8 positions][see AddDoubleMma()]: columns are its rows.
template <typename Tile>
__device__ void Multiply(const ConvGemmBatch& call, const ConvGemm& p, const Pitches& pitch,
                         const WarpPart<Tile>& part, int first, int last, const float* weights,
                         const float* (&windows)[Tile::kWarpTiles], int& passed,
                         double (&sums)[Tile::kWarpTiles][4]) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int column = part.column + MmaGroup(lane);
  const int eights = call.channels / 8;
  const auto mine = EightsOfWarp::Of(part, eights, first, last);
  int at = mine.begin;
  const SmallDivision by_columns(p.tap_columns);
  for (int tap = SmallDivision(eights).Quotient(at); at < mine.end; ++tap) {
    const int eight = at - tap * eights;
    const int to = by_columns.At(p.taps, tap) * pitch.pixel + 8 * eight;
#pragma unroll
    for (int i = 0; i < Tile::kWarpTiles; ++i) windows[i] += to - passed;
    const int channel = 8 * eight + 2 * MmaPlace(lane);
    const float* b = weights + (Tile::kB == Contiguous::kOutput
                                    ? (tap * call.channels + channel) * Tile::kWeightPitch + column
                                    : (tap * Tile::kColumns + column) * pitch.column + channel);
    const int count = min(mine.end - at, mine.most - eight);
#pragma unroll 1
    for (int i = 0; i < count; ++i) {
      double w[2][2];
      float2 a[Tile::kWarpTiles];
      LoadWeights<Tile>(b, pitch.column, w);
#pragma unroll
      for (int m = 0; m < Tile::kWarpTiles; ++m) {
        a[m] = *reinterpret_cast<const float2*>(windows[m]);
        windows[m] += 8;
      }
#pragma unroll
      for (int m = 0; m < 2 * Tile::kWarpTiles; ++m) {
        const int tile = m % Tile::kWarpTiles;
        if (tile + 1 == Tile::kWarpTiles && part.is_short) continue;
        AddDoubleMma(w[m / Tile::kWarpTiles], m < Tile::kWarpTiles ? a[tile].x : a[tile].y,
                     sums[tile]);
      }
      b += Tile::kB == Contiguous::kOutput ? 8 * Tile::kWeightPitch : 8;
    }
    at += count + mine.skip;
    passed = to + 8 * count;
  }
}

// Stores to sums [share][position][column].
template <typename Tile>
__device__ void StoreSums(const double (&result)[Tile::kWarpTiles][4], const WarpPart<Tile>& part,
                          float* sums) {
  StoreColumns(
      result, Tile::kWarpTiles - (part.is_short ? 1 : 0), Tile::kSumsPitch,
      static_cast<int>(threadIdx.x) % kWarp,
      sums + part.sharer * Tile::kSums + 8 * part.first_tile * Tile::kSumsPitch + part.column);
}

__device__ float Masked(float mask, float value) { return mask > 0 ? value : 0.0F; }

// `mask`: address for column n; later columns follow.
__device__ float4 Finished(const ConvGemmBatch& call, const ConvGemm& p, const float* mask, int n,
                           float4 sum) {
  if (call.epilogue == GemmEpilogue::kBiasRelu) {
    return Relu(sum, __ldg(reinterpret_cast<const float4*>(p.bias + n)));
  }
  if (call.epilogue == GemmEpilogue::kMask) {
    const float4 masks = __ldg(reinterpret_cast<const float4*>(mask));
    return make_float4(Masked(masks.x, sum.x), Masked(masks.y, sum.y), Masked(masks.z, sum.z),
                       Masked(masks.w, sum.w));
  }
  return sum;
}

// Adds the sums of the shares, in order, and stores the results.
template <typename Tile>
__device__ void Finish(const ConvGemmBatch& call, const ConvGemm& p, const float* sums) {
  constexpr int kQuads = Tile::kColumns / 4;
  const int first_n = static_cast<int>(blockIdx.x) * Tile::kColumns;
  const int image = static_cast<int>(blockIdx.y);
  const SmallDivision by_width(p.width);
  const float* mask = p.mask + image * call.mask_image + first_n;
  float* c = p.c + image * call.c_image + first_n;
  const int results = p.height * p.width * kQuads;
  for (int i = static_cast<int>(threadIdx.x); i < results; i += kThreads) {
    const int m = i / kQuads;
    const int n = i % kQuads * 4;
    const float4 sum = SumOfSharers<Tile::kSharers>(sums + m * Tile::kSumsPitch + n, Tile::kSums);
    *reinterpret_cast<float4*>(c + by_width.At(p.c_at, m) + n) =
        Finished(call, p, mask + by_width.At(p.mask_at, m) + n, first_n + n, sum);
  }
}

// Grid: groups of columns, images, GEMMs. The weights do not change while the kernels of an update
// run, so the kernel loads them before the previous kernel has ended. The weights of the second
// half of the taps arrive while the first half is used.
template <typename Tile>
__global__ void __maxnreg__(96) ConvGemmKernel(const __grid_constant__ ConvGemmBatch call,
                                               const __grid_constant__ Pitches pitch) {
  extern __shared__ __align__(16) float memory[];
  const ConvGemm& p = call.gemms[blockIdx.z];
  const int taps = p.tap_rows * p.tap_columns;
  const int half = (taps + 1) / 2;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const WarpPart<Tile> part;
  float* weights = memory + call.pixels * pitch.pixel;
  StartWeights<Tile>(call, p, pitch.column, 0, half, weights);
  const float* windows[Tile::kWarpTiles];
  FindWindows<Tile>(p, memory, pitch.pixel, part, lane, windows);
  AwaitPredecessor();
  const int image = static_cast<int>(blockIdx.y) * call.pixels * call.channels;
  StartRows(RowWalk(call.channels), p.a + image, call.pixels, call.channels, memory, pitch.pixel);
  __pipeline_commit();
  StartWeights<Tile>(call, p, pitch.column, half, taps, weights);
  __pipeline_commit();
  double sums[Tile::kWarpTiles][4] = {};
  int passed = 0;
#pragma unroll 1
  for (int first = 0; first < taps; first += half) {
    if (first == 0) {
      __pipeline_wait_prior(1);
    } else {
      __pipeline_wait_prior(0);
    }
    __syncthreads();
    Multiply<Tile>(call, p, pitch, part, first, min(first + half, taps), weights, windows, passed,
                   sums);
  }
  __pipeline_wait_prior(0);
  __syncthreads();  // the sums take the place of image and weights
  StoreSums<Tile>(sums, part, memory);
  __syncthreads();
  Finish<Tile>(call, p, memory);
}

int MostPositions(const ConvGemmBatch& call) {
  int most = 0;
  for (int i = 0; i < call.count; ++i) {
    most = std::max(most, call.gemms[i].height * call.gemms[i].width);
  }
  return most;
}

int MostTaps(const ConvGemmBatch& call) {
  int most = 0;
  for (int i = 0; i < call.count; ++i) {
    most = std::max(most, call.gemms[i].tap_rows * call.gemms[i].tap_columns);
  }
  return most;
}

// Whether SmallDivision supports the divisions of thread numbers by `quads`, and of the groups of
// eight channels over all taps by `eights`.
bool HasSmallDivisions(const ConvGemmBatch& call) {
  const long long quads = call.channels / 4;
  const long long eights = call.channels / 8;
  return kThreads * quads < kSmall && MostTaps(call) * eights * eights < kSmall;
}

template <typename Tile>
void Launch(const ConvGemmBatch& call, cudaStream_t stream) {
  LaunchKernel("convolution", ConvGemmKernel<Tile>,
               {.grid = dim3(call.columns / Tile::kColumns, call.images, call.count),
                .block = kThreads,
                .shared_bytes = sizeof(float) * Tile::Floats(call, MostTaps(call)),
                .stream = stream,
                .order = call.order},
               call, Pitches(call));
}

// Calls visit(Tile) with the call's tile.
template <int kTiles, typename Visit>
auto WithColumns(const ConvGemmBatch& call, const Visit& visit) {
  if (call.by_channels) return visit(Tile<kTiles, 16, Contiguous::kOutput, true>());
  if (call.b_contiguous == Contiguous::kOutput) {
    return call.narrow ? visit(Tile<kTiles, 16, Contiguous::kOutput>())
                       : visit(Tile<kTiles, 32, Contiguous::kOutput>());
  }
  return call.narrow ? visit(Tile<kTiles, 16, Contiguous::kReduction>())
                     : visit(Tile<kTiles, 32, Contiguous::kReduction>());
}

constexpr int kMostTiles[] = {7, 11, 13};

template <typename Visit>
auto WithTile(const ConvGemmBatch& call, const Visit& visit) {
  const int positions = MostPositions(call);
  if (positions <= 8 * kMostTiles[0]) return WithColumns<kMostTiles[0]>(call, visit);
  if (positions <= 8 * kMostTiles[1]) return WithColumns<kMostTiles[1]>(call, visit);
  return WithColumns<kMostTiles[2]>(call, visit);
}

}  // namespace

bool SupportsConvGemms(const ConvGemmBatch& call) {
  if (call.channels % 8 != 0 || call.columns % (call.narrow ? 16 : 32) != 0) return false;
  if (call.count > ConvGemmBatch::kMaxGemms || MostPositions(call) > 8 * kMostTiles[2]) {
    return false;
  }
  if (call.by_channels && (!call.narrow || call.b_contiguous != Contiguous::kOutput)) return false;
  if (!HasSmallDivisions(call)) return false;
  return WithTile(call, [&](auto tile) {
    return sizeof(float) * tile.Floats(call, MostTaps(call)) <= kLargestShared;
  });
}

void LaunchConvGemms(const ConvGemmBatch& call, cudaStream_t stream) {
  UPER_CHECK(SupportsConvGemms(call), "LaunchConvGemms() does not support this call");
  WithTile(call, [&](auto tile) { Launch<decltype(tile)>(call, stream); });
}

}  // namespace uper::cuda
