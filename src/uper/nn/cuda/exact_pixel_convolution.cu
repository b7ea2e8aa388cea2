#include <cuda_pipeline_primitives.h>

#include <cstddef>
#include <cstdint>

#include "uper/nn/cuda/byte_mma.cuh"
#include "uper/nn/cuda/exact_pixel_convolution.h"
#include "uper/nn/cuda/fixed_point.cuh"
#include "uper/nn/cuda/launch.cuh"
#include "uper/nn/cuda/mma.cuh"
#include "uper/nn/cuda/pixel_share.cuh"

namespace uper {
namespace {

constexpr int kStride = kPixelStride;
constexpr int kFilters = kPixelFilters;
constexpr int kKernel = kPixelKernel;
constexpr int kChannels = kPixelChannels;
constexpr int kWarp = 32;

// A warp has 8 filters, with all their weights in registers, and every kSharers-th pair of tiles of
// 16 windows. Warps 4 apart use the same tensor cores: each has as much to do as the others.
constexpr int kGroupFilters = 8;
constexpr int kGroups = kFilters / kGroupFilters;
constexpr int kSharers = 2;
constexpr int kWarps = kGroups * kSharers;
constexpr int kThreads = kWarps * kWarp;
constexpr int kTile = 16;

// 32 steps of a product are a channel's four rows of a window. Their order: rows of the first four
// columns, then of the others.
constexpr int kHalves = kKernel / kStride;
constexpr int kSteps = kChannels * kHalves;
static_assert(kStride == 4 && kHalves == 2);

// Weights in shared memory: rows of the kernel are apart by 8 banks more, as four of them are read
// at once.
constexpr int kWeightRow = kKernel * kChannels * kFilters;
constexpr int kWeightPitch = kWeightRow + 8;

// Pixels in shared memory: blocks of 4 x 4, [channel][row of blocks][column]. A window is 2 x 2 of
// them. Where windows go on in the next row their banks go on too: 8 blocks have different ones.
struct PixelBlocks {
  static constexpr int kGap = 8;
  int rows, pitch;

  __host__ __device__ PixelBlocks(int out_rows, int out_width)
      : rows(out_rows + 1), pitch(out_width + kGap) {}
  __device__ int OfStep(int step) const { return (step / kHalves * rows + step % kHalves) * pitch; }
  __host__ int size() const { return kChannels * rows * pitch; }
};

// A window's first block, without a division for each: right as long as windows * width < 2^16.
struct WindowBlocks {
  unsigned inverse;

  __device__ explicit WindowBlocks(unsigned width) : inverse((0xffff + width) / width) {}
  __device__ unsigned operator()(unsigned window) const {
    return window + (window * inverse >> 16) * PixelBlocks::kGap;
  }
};

__device__ void StartWeights(const float* w, float* weights) {
  static_assert(4 * kThreads >= kWeightRow);
  const int at = 4 * static_cast<int>(threadIdx.x);
  if (at >= kWeightRow) return;
#pragma unroll
  for (int row = 0; row < kKernel; ++row) {
    __pipeline_memcpy_async(weights + row * kWeightPitch + at, w + row * kWeightRow + at,
                            4 * sizeof(float));
  }
}

// `picture` from the first row on. A warp has every other row of a channel's blocks, a lane a
// column.
__device__ void StartPixels(const std::uint8_t* picture, const PictureShape& in,
                            const PixelBlocks& blocks, uint4* pixels) {
  static_assert(kWarps % kChannels == 0 && kSharePositions / 2 + 1 <= kWarp);
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int channel = warp % kChannels;
  const int columns = in.width / 4;
  if (lane >= columns) return;
  const auto* from =
      reinterpret_cast<const unsigned*>(picture) + channel * in.height * columns + lane;
  uint4* to = pixels + channel * blocks.rows * blocks.pitch + lane;
  for (int row = warp / kChannels; row < blocks.rows; row += kWarps / kChannels) {
    auto* block = reinterpret_cast<unsigned*>(to + row * blocks.pitch);
#pragma unroll
    for (int line = 0; line < 4; ++line) {
      __pipeline_memcpy_async(block + line, from + (4 * row + line) * columns, sizeof(unsigned));
    }
  }
}

// A lane's weights, for AddByteMma(): of one filter, and in each step of one row.
struct LaneWeights {
  unsigned bytes[kSteps][kWholeBytes][2];

  // Returns the filter's unit.
  __device__ float Load(const float* weights, int first_filter, int lane) {
    weights += MmaPlace(lane) * kWeightPitch + first_filter + MmaGroup(lane);
    float values[kSteps][2][4];
    unsigned largest = 0;
#pragma unroll
    for (int i = 0; i < kSteps * kKernel; ++i) {
      const int step = i / kKernel;
      const int column = i % kKernel;
      const float value = weights[step % kHalves * 4 * kWeightPitch +
                                  (column * kChannels + step / kHalves) * kFilters];
      values[step][column / 4][column % 4] = value;
      largest = max(largest, MagnitudeBits(value));
    }
    largest = max(largest, __shfl_xor_sync(~0U, largest, 1));
    largest = max(largest, __shfl_xor_sync(~0U, largest, 2));
    const FixedPoint fixed(largest);
#pragma unroll
    for (int i = 0; i < kSteps * 2; ++i) {
      unsigned four[4];
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        four[j] = static_cast<unsigned>(fixed.Whole(values[i / 2][i % 2][j]));
      }
      TransposeBytes(four);
#pragma unroll
      for (int byte = 0; byte < kWholeBytes; ++byte) bytes[i / 2][byte][i % 2] = four[byte];
    }
    return fixed.unit();
  }
};

// Of sums of the whole numbers' bytes times pixels, with one rounding.
__device__ float SumOfBytes(int lowest, int low, int high, int highest) {
  // Two neighbours fit into 32 bits: (256 * 128 + 255) * 255 * 256 is less than 2^31.
  static_assert(kSteps * 32 == 256);
  const int upper = (highest << 8) + high;
  const unsigned lower = (static_cast<unsigned>(low) << 8) + static_cast<unsigned>(lowest);
  return __ll2float_rn(static_cast<long long>(upper) * 65536 + lower);
}

// Not a number if one of them is not.
__device__ float LargerOrNan(float x, float y) {
  float larger;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(larger) : "f"(x), "f"(y));
  return larger;
}

// What becomes of the sums of a lane's two filters.
struct LaneFinish {
  float scale[2], bias[2];

  __device__ LaneFinish(float unit, float pixel_scale, const float* filters, int lane) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int filter = 2 * MmaPlace(lane) + i;
      scale[i] = pixel_scale * __shfl_sync(~0U, unit, 4 * filter);  // of a lane that has it
      bias[i] = __ldg(filters + filter);
    }
  }
  // ReLU, but what is not a number stays so.
  __device__ float operator()(const int (&sums)[kWholeBytes][4], int at) const {
    const float sum = SumOfBytes(sums[0][at], sums[1][at], sums[2][at], sums[3][at]);
    return LargerOrNan(0.0F, fmaf(scale[at % 2], sum, bias[at % 2]));
  }
};

// A warp's part of kTiles tiles from the window `first` on; there are `windows`. Two tiles keep the
// tensor cores busier than one. `out`: of the first of all windows, the lane's first filter.
template <int kTiles>
__device__ void Convolve(const uint4* pixels, const PixelBlocks& blocks,
                         const WindowBlocks& block_of, const LaneWeights& weights,
                         const LaneFinish& finish, int first, int windows, float* out) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const uint4* from[kTiles];  // the lane's, see LoadByteRows()
#pragma unroll
  for (int tile = 0; tile < kTiles; ++tile) {
    const int window = min(first + tile * kTile + lane % kTile, windows - 1);
    from[tile] = pixels + block_of(window) + lane / kTile;
  }
  int sums[kTiles][kWholeBytes][4] = {};
#pragma unroll
  for (int step = 0; step < kSteps; ++step) {
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
      unsigned a[4];
      LoadByteRows(from[tile] + blocks.OfStep(step), a);
      AddByteMma(a, weights.bytes[step][0], sums[tile][0]);
      AddByteMma(a, weights.bytes[step][1], sums[tile][1]);
      AddByteMma(a, weights.bytes[step][2], sums[tile][2]);
      AddSignedByteMma(a, weights.bytes[step][3], sums[tile][3]);
    }
  }
#pragma unroll
  for (int i = 0; i < 2 * kTiles; ++i) {
    const int window = first + 8 * i + MmaGroup(lane);
    const int at = i % 2 * 2;
    const float2 two = make_float2(finish(sums[i / 2], at), finish(sums[i / 2], at + 1));
    if (window < windows) __stcg(reinterpret_cast<float2*>(out + window * kFilters), two);
  }
}

// Grid: groups of `rows` output rows, pictures, passes. One block for each multiprocessor, so that
// a thread may have more registers than 128.
__global__ void __launch_bounds__(kThreads, 1)
    ExactPixelConvolutionKernel(const __grid_constant__ PixelConvolution call, int rows) {
  extern __shared__ __align__(16) float memory[];
  float* weights = memory;
  auto* pixels = reinterpret_cast<uint4*>(memory + kKernel * kWeightPitch);
  const PixelConvolution::Pass& pass = call.list[blockIdx.z];
  const int first_row = static_cast<int>(blockIdx.x) * rows;
  const auto picture = static_cast<std::ptrdiff_t>(blockIdx.y);
  const int out_rows = min(rows, call.out.height - first_row);
  const PixelBlocks blocks(out_rows, call.out.width);
  StartWeights(pass.w, weights);
  __pipeline_commit();
  AwaitPredecessor();
  StartPixels(
      pass.pixels + (picture * kChannels * call.in.height + first_row * kStride) * call.in.width,
      call.in, blocks, pixels);
  __pipeline_commit();
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int first_filter = warp % kGroups * kGroupFilters;
  __pipeline_wait_prior(1);
  __syncthreads();
  LaneWeights mine;
  const float unit = mine.Load(weights, first_filter, lane);
  const LaneFinish finish(unit, call.scale, pass.bias + first_filter, lane);
  __pipeline_wait_prior(0);
  __syncthreads();

  const int windows = out_rows * call.out.width;
  const WindowBlocks block_of(call.out.width);
  float* out = pass.out + (picture * call.out.height + first_row) * call.out.width * kFilters +
               first_filter + 2 * MmaPlace(lane);
#pragma unroll 1
  for (int first = warp / kGroups * 2 * kTile; first < windows; first += kSharers * 2 * kTile) {
    if (first + kTile < windows) {
      Convolve<2>(pixels, blocks, block_of, mine, finish, first, windows, out);
    } else {
      Convolve<1>(pixels, blocks, block_of, mine, finish, first, windows, out);
    }
  }
}

}  // namespace

// Every output is the same in any block: 10 rows of 64 Atari pictures are a block for each
// multiprocessor of a large GPU, two rows of few pictures are many small ones.
void LaunchExactPixelConvolution(const PixelConvolution& call, cudaStream_t stream) {
  constexpr int kMany = 32;
  const int rows = call.count * call.passes >= kMany ? 10 : 2;
  const PixelBlocks blocks(rows, call.out.width);
  LaunchKernel(
      "first convolution", ExactPixelConvolutionKernel,
      {.grid = dim3((call.out.height + rows - 1) / rows, call.count, call.passes),
       .block = kThreads,
       .shared_bytes = sizeof(float) * kKernel * kWeightPitch + sizeof(uint4) * blocks.size(),
       .stream = stream,
       .follow = call.follow},
      call, rows);
}

}  // namespace uper
