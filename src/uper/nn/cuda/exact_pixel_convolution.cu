#include <cuda_pipeline_primitives.h>

#include <cstddef>
#include <cstdint>

#include "uper/nn/cuda/exact_pixel_convolution.h"
#include "uper/nn/cuda/exact_pixel_tile.cuh"
#include "uper/nn/cuda/fixed_point.cuh"
#include "uper/nn/cuda/launch.cuh"
#include "uper/nn/cuda/mma.cuh"
#include "uper/nn/cuda/pixel_share.cuh"

namespace uper {
namespace {

constexpr int kWarp = 32;

// A warp has 8 filters, with all their weights in registers, and every kSharers-th pair of tiles of
// windows. Warps 4 apart use the same tensor cores: each has as much to do as the others.
constexpr int kGroups = kPixelFilters / kTileFilters;
constexpr int kSharers = 2;
constexpr int kWarps = kGroups * kSharers;
constexpr int kThreads = kWarps * kWarp;

// Weights in shared memory: rows of the kernel are apart by 8 banks more, as four of them are read
// at once.
constexpr int kWeightRow = kPixelKernel * kPixelChannels * kPixelFilters;
constexpr int kWeightPitch = kWeightRow + 8;

__device__ void StartWeights(const float* w, float* weights) {
  static_assert(4 * kThreads >= kWeightRow);
  const int at = 4 * static_cast<int>(threadIdx.x);
  if (at >= kWeightRow) return;
#pragma unroll
  for (int row = 0; row < kPixelKernel; ++row) {
    __pipeline_memcpy_async(weights + row * kWeightPitch + at, w + row * kWeightRow + at,
                            4 * sizeof(float));
  }
}

// `picture` from the first row on. A warp has every other row of a channel's blocks, a lane a
// column.
__device__ void StartPixels(const std::uint8_t* picture, const PictureShape& in,
                            const PixelBlocks& blocks, uint4* pixels) {
  static_assert(kWarps % kPixelChannels == 0 && kSharePositions / 2 + 1 <= kWarp);
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int channel = warp % kPixelChannels;
  const int columns = in.width / 4;
  if (lane >= columns) return;
  const auto* from =
      reinterpret_cast<const unsigned*>(picture) + channel * in.height * columns + lane;
  uint4* to = pixels + channel * blocks.rows * blocks.pitch + lane;
  for (int row = warp / kPixelChannels; row < blocks.rows; row += kWarps / kPixelChannels) {
    auto* block = reinterpret_cast<unsigned*>(to + row * blocks.pitch);
#pragma unroll
    for (int line = 0; line < 4; ++line) {
      __pipeline_memcpy_async(block + line, from + (4 * row + line) * columns, sizeof(unsigned));
    }
  }
}

// A lane's weights, for ConvolvePair().
struct LaneWeights {
  StepWeights steps[kTileSteps];

  // Returns the filter's unit.
  __device__ float Load(const float* weights, int first_filter, int lane) {
    weights += MmaPlace(lane) * kWeightPitch + first_filter + MmaGroup(lane);
    float values[kTileSteps][2][4];
    unsigned largest = 0;
#pragma unroll
    for (int i = 0; i < kTileSteps * kPixelKernel; ++i) {
      const int step = i / kPixelKernel;
      const int column = i % kPixelKernel;
      const float value = weights[step % kWindowHalves * 4 * kWeightPitch +
                                  (column * kPixelChannels + step / kWindowHalves) * kPixelFilters];
      values[step][column / 4][column % 4] = value;
      largest = max(largest, MagnitudeBits(value));
    }
    largest = max(largest, __shfl_xor_sync(~0U, largest, 1));
    largest = max(largest, __shfl_xor_sync(~0U, largest, 2));
    const FixedPoint fixed(largest);
#pragma unroll
    for (int i = 0; i < kTileSteps * 2; ++i) {
      unsigned words[kWholeBytes];
      CutIntoBytes(fixed, values[i / 2][i % 2], words);
#pragma unroll
      for (int byte = 0; byte < kWholeBytes; ++byte) steps[i / 2].bytes[byte][i % 2] = words[byte];
    }
    return fixed.unit();
  }

  __device__ const StepWeights& operator()(int step) const { return steps[step]; }
};

// Grid: groups of `rows` output rows, pictures, passes. One block for each multiprocessor, so that
// a thread may have more registers than 128.
__global__ void __launch_bounds__(kThreads, 1)
    ExactPixelConvolutionKernel(const __grid_constant__ PixelConvolution call, int rows) {
  extern __shared__ __align__(16) float memory[];
  float* weights = memory;
  auto* pixels = reinterpret_cast<uint4*>(memory + kPixelKernel * kWeightPitch);
  const PixelConvolution::Pass& pass = call.list[blockIdx.z];
  const int first_row = static_cast<int>(blockIdx.x) * rows;
  const auto picture = static_cast<std::ptrdiff_t>(blockIdx.y);
  const int out_rows = min(rows, call.out.height - first_row);
  const PixelBlocks blocks(out_rows, call.out.width);
  StartPixels(pass.pixels + (picture * kPixelChannels * call.in.height + first_row * kPixelStride) *
                                call.in.width,
              call.in, blocks, pixels);
  AwaitPredecessors();
  StartWeights(pass.w, weights);
  __pipeline_commit();
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int first_filter = warp % kGroups * kTileFilters;
  __pipeline_wait_prior(0);
  __syncthreads();
  LaneWeights mine;
  const float unit = mine.Load(weights, first_filter, lane);
  const LaneFinish finish(unit, call.scale, pass.bias + first_filter, lane);

  const PixelWindows windows(pixels, out_rows, call.out.width);
  float* out = pass.out + (picture * call.out.height + first_row) * call.out.width * kPixelFilters +
               first_filter + 2 * MmaPlace(lane);
  const auto store = [&](int window, const float2& two) {
    __stcg(reinterpret_cast<float2*>(out + window * kPixelFilters), two);
  };
#pragma unroll 1
  for (int first = warp / kGroups * kPairWindows; first < windows.count;
       first += kSharers * kPairWindows) {
    ConvolvePair(windows, mine, finish, first, lane, store);
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
       .shared_bytes = sizeof(float) * kPixelKernel * kWeightPitch + sizeof(uint4) * blocks.size(),
       .stream = stream,
       .follow = call.follow},
      call, rows);
}

}  // namespace uper
