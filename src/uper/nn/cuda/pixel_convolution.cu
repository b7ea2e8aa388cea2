#include <cuda_pipeline_primitives.h>

#include <algorithm>

#include "uper/nn/cuda/launch.cuh"
#include "uper/nn/cuda/pixel_convolution.h"
#include "uper/nn/cuda/warp_tile.cuh"

namespace uper {
namespace {

constexpr int kKernel = 8;
constexpr int kStride = 4;
constexpr int kChannels = 4;
constexpr int kFilters = 32;
constexpr int kWarp = 32;

// A warp computes two rows of outputs from one channel, at most kWarpPositions positions, each lane
// kLanePositions positions and 8 filters.
constexpr int kLanePositions = 5;
constexpr int kLaneFilters = 8;
constexpr int kWarpPositions = kLanesM * kLanePositions;
constexpr int kWeights = kKernel * kKernel * kChannels * kFilters;
constexpr int kSumsStride = kFilters + 4;  // spreads the positions over the banks

// A block is kPairs pairs of rows.
template <int kPairs>
struct Block {
  static constexpr int kThreads = kPairs * kChannels * kWarp;
  static constexpr int kInputRows = 2 * kPairs * kStride + kKernel - kStride;
  static constexpr int kSums = kPairs * kChannels * kWarpPositions * kSumsStride;

  static int Floats(int width) {
    return std::max(kWeights + kChannels * kInputRows * width, kSums);
  }
};

// Four bytes as floats. A byte in the lowest place of the float 2^23 is that float plus the byte:
// cheaper than a conversion.
__device__ float4 Widen(unsigned pixels, float scale) {
  constexpr float kTwo23 = 8388608.0F;
  const auto value = [&](unsigned selector) {
    return scale * (__uint_as_float(__byte_perm(pixels, 0x4b000000U, selector)) - kTwo23);
  };
  return make_float4(value(0x7540), value(0x7541), value(0x7542), value(0x7543));
}

// pixels [channel][input row][column], rows beyond the picture as 0.
template <int kPairs>
__device__ void LoadPixels(const PixelConvolution& call, const std::uint8_t* picture, int first_row,
                           float* pixels) {
  constexpr int kThreads = Block<kPairs>::kThreads;
  constexpr int kInputRows = Block<kPairs>::kInputRows;
  const int words = call.in.width / 4;
  for (int i = static_cast<int>(threadIdx.x); i < kChannels * kInputRows * words; i += kThreads) {
    const int row = i / words % kInputRows;
    const int channel = i / words / kInputRows;
    const int y = first_row + row;
    const unsigned four =
        y < call.in.height ? __ldg(reinterpret_cast<const unsigned*>(
                                       picture + (channel * call.in.height + y) * call.in.width) +
                                   i % words)
                           : 0;
    reinterpret_cast<float4*>(pixels)[i] = Widen(four, call.scale);
  }
}

// sums += a * (low, high).
__device__ void AddRow(float a, const float4& low, const float4& high,
                       float (&sums)[kLaneFilters]) {
  sums[0] = fmaf(a, low.x, sums[0]);
  sums[1] = fmaf(a, low.y, sums[1]);
  sums[2] = fmaf(a, low.z, sums[2]);
  sums[3] = fmaf(a, low.w, sums[3]);
  sums[4] = fmaf(a, high.x, sums[4]);
  sums[5] = fmaf(a, high.y, sums[5]);
  sums[6] = fmaf(a, high.z, sums[6]);
  sums[7] = fmaf(a, high.w, sums[7]);
}

// One channel's share of a warp's outputs. at[i]: the i-th position's window in `pixels`.
__device__ void AddChannel(const float* pixels, int width, const float* weights,
                           const int (&at)[kLanePositions],
                           float (&sums)[kLanePositions][kLaneFilters]) {
#pragma unroll 2
  for (int row = 0; row < kKernel; ++row) {
#pragma unroll
    for (int column = 0; column < kKernel; column += 4) {
      float4 a[kLanePositions];
#pragma unroll
      for (int i = 0; i < kLanePositions; ++i) {
        a[i] = *reinterpret_cast<const float4*>(pixels + at[i] + row * width + column);
      }
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const float* w = weights + (row * kKernel + column + e) * kChannels * kFilters;
        const float4 low = *reinterpret_cast<const float4*>(w);
        const float4 high = *reinterpret_cast<const float4*>(w + kFilters / 2);
#pragma unroll
        for (int i = 0; i < kLanePositions; ++i) {
          const float value = e == 0 ? a[i].x : e == 1 ? a[i].y : e == 2 ? a[i].z : a[i].w;
          AddRow(value, low, high, sums[i]);
        }
      }
    }
  }
}

// Grid: groups of 2 kPairs output rows, pictures, passes.
template <int kPairs>
__global__ void __launch_bounds__(Block<kPairs>::kThreads)
    PixelConvolutionKernel(const __grid_constant__ PixelConvolution call) {
  constexpr int kThreads = Block<kPairs>::kThreads;
  constexpr int kInputRows = Block<kPairs>::kInputRows;
  extern __shared__ __align__(16) float memory[];
  float* weights = memory;  // as in the parameters
  float* pixels = memory + kWeights;
  const PixelConvolution::Pass& pass = call.list[blockIdx.z];
  const int picture = static_cast<int>(blockIdx.y);
  const int first_row = static_cast<int>(blockIdx.x) * 2 * kPairs;
  for (int i = 4 * static_cast<int>(threadIdx.x); i < kWeights; i += 4 * kThreads) {
    __pipeline_memcpy_async(weights + i, pass.w + i, 4 * sizeof(float));
  }
  __pipeline_commit();
  const std::ptrdiff_t picture_size = kChannels * call.in.height * call.in.width;
  LoadPixels<kPairs>(call, pass.pixels + picture * picture_size, first_row * kStride, pixels);
  __pipeline_wait_prior(0);
  __syncthreads();

  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int pair = warp / kChannels;
  const int channel = warp % kChannels;
  const int lane_m = LaneM(lane);
  const int lane_n = LaneN(lane);
  int at[kLanePositions];
#pragma unroll
  for (int i = 0; i < kLanePositions; ++i) {
    const int position = min(lane_m + kLanesM * i, 2 * call.out.width - 1);
    const int row = 2 * pair + position / call.out.width;
    at[i] = (channel * kInputRows + row * kStride) * call.in.width +
            position % call.out.width * kStride;
  }
  float sums[kLanePositions][kLaneFilters] = {};
  AddChannel(pixels, call.in.width, weights + channel * kFilters + 4 * lane_n, at, sums);
  __syncthreads();  // the sums take the place of pixels and weights

#pragma unroll
  for (int i = 0; i < kLanePositions; ++i) {
    float* row = memory + (warp * kWarpPositions + lane_m + kLanesM * i) * kSumsStride + 4 * lane_n;
    *reinterpret_cast<float4*>(row) = make_float4(sums[i][0], sums[i][1], sums[i][2], sums[i][3]);
    *reinterpret_cast<float4*>(row + kFilters / 2) =
        make_float4(sums[i][4], sums[i][5], sums[i][6], sums[i][7]);
  }
  __syncthreads();
  const int positions = 2 * call.out.width;  // of a pair
  for (int i = static_cast<int>(threadIdx.x); i < kPairs * positions * kFilters; i += kThreads) {
    const int filter = i % kFilters;
    const int position = i / kFilters % positions;
    const int its_pair = i / kFilters / positions;
    const int row = first_row + 2 * its_pair + position / call.out.width;
    if (row >= call.out.height) continue;
    float sum = __ldg(pass.bias + filter);
#pragma unroll
    for (int c = 0; c < kChannels; ++c) {
      sum +=
          memory[((its_pair * kChannels + c) * kWarpPositions + position) * kSumsStride + filter];
    }
    const std::ptrdiff_t place =
        (static_cast<std::ptrdiff_t>(picture) * call.out.height + row) * call.out.width +
        position % call.out.width;
    pass.out[place * kFilters + filter] = fmaxf(0.0F, sum);
  }
}

template <int kPairs>
void Launch(const PixelConvolution& call, cudaStream_t stream) {
  const std::size_t bytes = sizeof(float) * Block<kPairs>::Floats(call.in.width);
  const auto kernel = PixelConvolutionKernel<kPairs>;
  const int groups = (call.out.height + 2 * kPairs - 1) / (2 * kPairs);
  LaunchKernel("first convolution", kernel,
               {.grid = dim3(groups, call.count, call.passes),
                .block = Block<kPairs>::kThreads,
                .shared_bytes = bytes,
                .stream = stream},
               call);
}

}  // namespace

bool SuitsPixelConvolution(const InputSpec& input, const ConvolutionSpec& layer) {
  const int out_width = (input.width - layer.kernel) / layer.stride + 1;
  return input.type == InputType::kUint8 && input.layout == InputLayout::kPlanes &&
         input.channels == kChannels && input.width % 4 == 0 && layer.kernel == kKernel &&
         layer.stride == kStride && layer.filters == kFilters && 2 * out_width <= kWarpPositions;
}

// Every output is the same sum in any block: 10 rows of 64 Atari pictures are a block for each
// multiprocessor of a large GPU, two rows of few pictures are many small ones.
void LaunchPixelConvolution(const PixelConvolution& call, cudaStream_t stream) {
  constexpr int kMany = 32;
  if (call.count * call.passes >= kMany) return Launch<5>(call, stream);
  Launch<1>(call, stream);
}

}  // namespace uper
