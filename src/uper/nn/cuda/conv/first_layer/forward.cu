#include <cuda_pipeline_primitives.h>

#include <algorithm>

#include "uper/nn/cuda/conv/first_layer/forward.h"
#include "uper/nn/cuda/conv/first_layer/forward_exact.h"
#include "uper/nn/cuda/conv/first_layer/warp_tile_tf32.cuh"
#include "uper/nn/cuda/ptx/bytes_to_floats.cuh"
#include "uper/nn/cuda/runtime/launch.cuh"

namespace uper::cuda {
namespace {

constexpr int kStride = kPixelStride;
constexpr int kFilters = kPixelFilters;
constexpr int kKernel = kPixelKernel;
constexpr int kChannels = kPixelChannels;
constexpr int kWarp = 32;
constexpr int kWeights = kKernel * kKernel * kChannels * kFilters;

// A block computes kPairs pairs of rows. A warp has a Share: two rows of outputs from one channel.
template <int kPairs, typename Share>
struct Block {
  static constexpr int kThreads = kPairs * kChannels * kWarp;
  static constexpr int kInputRows = 2 * kPairs * kStride + kKernel - kStride;
  static constexpr int kWarpSums = kSharePositions * Share::kSumsStride;
  static constexpr int kSums = kPairs * kChannels * kWarpSums;

  static int Floats(int width) {
    return std::max(Share::kWeights + kChannels * kInputRows * width, kSums);
  }
};

// pixels [channel][input row][column], with 0 for rows outside the image. The rows of a channel are
// contiguous.
template <int kPairs, typename Share>
__device__ void LoadPixels(const FirstLayerForward& call, const std::uint8_t* image, int first_row,
                           float* pixels) {
  constexpr int kThreads = Block<kPairs, Share>::kThreads;
  const int row_words = call.in.width / 4;
  const int words = Block<kPairs, Share>::kInputRows * row_words;
  const int there = (call.in.height - first_row) * row_words;
  const auto* from = reinterpret_cast<const unsigned*>(image) + first_row * row_words;
  for (int i = static_cast<int>(threadIdx.x); i < words; i += kThreads) {
    unsigned fours[kChannels];
#pragma unroll
    for (int c = 0; c < kChannels; ++c) {
      fours[c] = i < there ? __ldg(from + c * call.in.height * row_words + i) : 0;
    }
#pragma unroll
    for (int c = 0; c < kChannels; ++c) {
      reinterpret_cast<float4*>(pixels)[c * words + i] = Widen(fours[c]);
    }
  }
}

// Grid: groups of 2 kPairs output rows, images, passes.
template <int kPairs, typename Share>
__global__ void __launch_bounds__(Block<kPairs, Share>::kThreads)
    PixelConvolutionKernel(const __grid_constant__ FirstLayerForward call) {
  constexpr int kThreads = Block<kPairs, Share>::kThreads;
  constexpr int kInputRows = Block<kPairs, Share>::kInputRows;
  constexpr int kWarpSums = Block<kPairs, Share>::kWarpSums;
  extern __shared__ __align__(16) float memory[];
  float* weights = memory;
  float* pixels = memory + Share::kWeights;
  const FirstLayerForward::Pass& pass = call.list[blockIdx.z];
  const int image = static_cast<int>(blockIdx.y);
  const int first_row = static_cast<int>(blockIdx.x) * 2 * kPairs;
  const std::ptrdiff_t image_size = kChannels * call.in.height * call.in.width;
  LoadPixels<kPairs, Share>(call, pass.pixels + image * image_size, first_row * kStride, pixels);
  AwaitPredecessors();
  for (int i = 4 * static_cast<int>(threadIdx.x); i < kWeights; i += 4 * kThreads) {
    __pipeline_memcpy_async(weights + Share::PlaceOfWeight(i), pass.w + i, 4 * sizeof(float));
  }
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();

  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int pair = warp / kChannels;
  const int channel = warp % kChannels;
  const auto window = [&](int position) {
    position = min(position, 2 * call.out.width - 1);
    const int row = 2 * pair + position / call.out.width;
    return (channel * kInputRows + row * kStride) * call.in.width +
           position % call.out.width * kStride;
  };
  typename Share::Sums sums;
  Share::Multiply(pixels, call.in.width, window, weights, channel, lane, sums);
  __syncthreads();  // the sums take the place of pixels and weights
  Share::Store(sums, lane, memory + warp * kWarpSums);
  __syncthreads();
  // A warp handles one position of the block at a time; positions are contiguous.
  static_assert(kFilters == kWarp);
  const int positions = 2 * call.out.width;  // per pair
  const int count = min(kPairs * positions, (call.out.height - first_row) * call.out.width);
  float* out = pass.out + (static_cast<std::ptrdiff_t>(image) * call.out.height + first_row) *
                              call.out.width * kFilters;
  const float bias = __ldg(pass.bias + lane);
  const float* pair_sums = memory;
  int in_pair = warp;
  for (int position = warp; position < count; position += kThreads / kWarp) {
    for (; in_pair >= positions; in_pair -= positions) pair_sums += kChannels * kWarpSums;
    float sum = 0.0F;
#pragma unroll
    for (int c = 0; c < kChannels; ++c) {
      sum += pair_sums[c * kWarpSums + in_pair * Share::kSumsStride + lane];
    }
    out[position * kFilters + lane] = fmaxf(0.0F, fmaf(call.scale, sum, bias));
    in_pair += kThreads / kWarp;
  }
}

template <int kPairs, typename Share>
void Launch(const FirstLayerForward& call, cudaStream_t stream) {
  using Block = Block<kPairs, Share>;
  const std::size_t bytes = sizeof(float) * Block::Floats(call.in.width);
  const auto kernel = PixelConvolutionKernel<kPairs, Share>;
  const int groups = (call.out.height + 2 * kPairs - 1) / (2 * kPairs);
  LaunchKernel("first convolution", kernel,
               {.grid = dim3(groups, call.count, call.passes),
                .block = Block::kThreads,
                .shared_bytes = bytes,
                .stream = stream,
                .order = call.order},
               call);
}

// An output has the same sum whatever block computes it. With 64 Atari images, blocks of 10 rows
// give each multiprocessor of a large GPU one block. With few images, blocks of two rows give many
// small blocks.
template <typename Share>
void LaunchShares(const FirstLayerForward& call, cudaStream_t stream) {
  constexpr int kMany = 32;
  if (call.count * call.passes >= kMany) return Launch<5, Share>(call, stream);
  Launch<1, Share>(call, stream);
}

}  // namespace

bool SupportsFirstLayerForward(const InputSpec& input, const ConvolutionSpec& layer) {
  const int out_width = (input.width - layer.kernel) / layer.stride + 1;
  return input.type == InputType::kUint8 && input.layout == InputLayout::kPlanes &&
         input.channels == kChannels && input.width % 4 == 0 && layer.kernel == kKernel &&
         layer.stride == kStride && layer.filters == kFilters && 2 * out_width <= kSharePositions;
}

void LaunchFirstLayerForward(const FirstLayerForward& call, cudaStream_t stream) {
  switch (call.precision) {
    case Precision::kFp32:
      return LaunchFirstLayerForwardExact(call, stream);
    case Precision::kTf32:
      return LaunchShares<MmaPixelShare<1>>(call, stream);
    case Precision::kTf32x3:
      return LaunchShares<MmaPixelShare<2>>(call, stream);
  }
}

}  // namespace uper::cuda
