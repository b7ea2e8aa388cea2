#include <cuda_pipeline_primitives.h>

#include <algorithm>
#include <cstddef>

#include "uper/nn/cuda/conv/conv_stack_shape.cuh"
#include "uper/nn/cuda/conv/conv_stack_training.h"
#include "uper/nn/cuda/conv/first_layer/forward_exact_block.cuh"
#include "uper/nn/cuda/ptx/cluster_copy.cuh"
#include "uper/nn/cuda/ptx/double_mma.cuh"
#include "uper/nn/cuda/ptx/relu.cuh"
#include "uper/nn/cuda/runtime/launch.cuh"

namespace uper::cuda {
namespace {

using conv_stack::First;
using conv_stack::Lane;
using conv_stack::Rank;
using conv_stack::Second;
using conv_stack::Third;

constexpr int kBlocks = 2;  // that compute one image
constexpr int kWarp = conv_stack::kWarp;
constexpr int kWarps = ExactPixelBlock::kWarps;  // that compute
constexpr int kThreads = ExactPixelBlock::kThreads;

// In the layers after the first, a block computes kFilters filters. A warp computes 16 of them at
// all positions, for its share of the channels.
constexpr int kFilters = Second::kFilters / kBlocks;
constexpr int kWarpFilters = 16;
constexpr int kSharers = kWarps * kWarpFilters / kFilters;  // the channels are split this often
static_assert(Third::kFilters == Second::kFilters && First::kFilters == kFilters);

// The share of a block in a layer.
template <typename Layer>
struct Share {
  // The layer's input in shared memory: [part of kFilters channels][row][column][channel]. Lanes
  // read two channels each of 8, at 4 neighboring positions. These lie in different banks, even if
  // the positions continue in the next row.
  static constexpr int kParts = Layer::kChannels / kFilters;
  static constexpr int kPitch = kFilters + 8 / Layer::kStride;  // of pixels
  static constexpr int kRow =
      Layer::kSide * kPitch + (Layer::kStride == 1 ? 16 : 4);  // of rows of pixels
  static_assert(kPitch * Layer::kStride % 32 == 8);
  static_assert((kRow - Layer::kOutSide * kPitch) * Layer::kStride % 32 == 0);
  static constexpr int kPart = Layer::kSide * kRow;
  static constexpr int kImage = kParts * kPart;

  static constexpr int kWeights = Layer::kTaps * Layer::kChannels * kFilters;
  static constexpr int kChannels = Layer::kChannels / kSharers;  // per warp
  static constexpr int kTiles = (Layer::kPositions + 7) / 8;     // of 8 positions
  static constexpr int kSumsPitch = kFilters + 4;                // of positions
  static constexpr int kSums = kTiles * 8 * kSumsPitch;          // per share
  static_assert(kChannels % 8 == 0 && kFilters % kChannels == 0);
};

// Rows of the first layer that a block computes.
constexpr int kFirstRows = First::kOutSide / kBlocks;
constexpr int kFirstPart = kFirstRows * Share<Second>::kRow;
constexpr int kFirstPixels = 4 * PixelBlocks(kFirstRows, First::kOutSide).size();

// Shared memory, in floats.
struct Memory {
  static constexpr int kFirst = 0;  // the results of the first layer
  static constexpr int kSecondWeights = kFirst + Share<Second>::kImage;
  static constexpr int kSums = 0;  // in the place of both
  static constexpr int kSecond = kSecondWeights + Share<Second>::kWeights;
  static constexpr int kThirdWeights = kSecond + Share<Third>::kImage;
  static constexpr int kSize = kThirdWeights + Share<Third>::kWeights;
  // Until the first layer is done, this is in the place of the third layer's weights.
  static constexpr int kFirstWeights = kThirdWeights;
  static constexpr int kPixels = kFirstWeights + ExactPixelBlock::kWeights;
  static_assert(kPixels + kFirstPixels <= kSize);
  static_assert(kSharers * std::max(Share<Second>::kSums, Share<Third>::kSums) <= kSecond);
};

struct Barriers {
  ArrivalBarrier first, second;  // results of the other block have arrived
};

// Called by one thread.
__device__ void PrepareBarriers(Barriers& barriers) {
  barriers.first.Initialize(1);
  barriers.second.Initialize(1);
  FenceArrivals();
  barriers.first.Expect(sizeof(float) * kFirstPart);
  barriers.second.Expect(sizeof(float) * Share<Third>::kPart);
}

// In shared memory, the filters of every second channel are rotated by 8, so that lanes read
// different banks at the same time.
__device__ int TurnOf(int channel) { return channel / 2 % 4 * 8; }

// One more warp loads weights while the others compute. Otherwise they would wait until all loads
// have been issued.
constexpr int kAllThreads = kThreads + kWarp;
__device__ bool IsLoader() { return threadIdx.x >= kThreads; }

// Called by the loading warp, for the block's filters: [tap][channel][filter].
template <typename Layer>
__device__ void LoadWeights(const float* w, float* weights) {
  constexpr int kQuads = kFilters / 4;
  w += Rank() * kFilters;
#pragma unroll 4
  for (int i = Lane(); i < Share<Layer>::kWeights / 4; i += kWarp) {
    const int row = i / kQuads;
    const int filter = i % kQuads * 4;
    __pipeline_memcpy_async(weights + row * kFilters + (filter + TurnOf(row)) % kFilters,
                            w + row * Layer::kFilters + filter, 4 * sizeof(float));
  }
  __pipeline_commit();
  __pipeline_wait_prior(0);
}

// Adds the products of a warp's channels to `sums`: [8 positions][see AddDoubleMma()]. Filters are
// rows.
template <typename Layer>
__device__ void Multiply(const float* image, const float* weights,
                         double (&sums)[Share<Layer>::kTiles][4]) {
  using Mine = Share<Layer>;
  constexpr int kEights = Mine::kChannels / 8;
  const int lane = Lane();
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int channel = warp % kSharers * Mine::kChannels + 2 * MmaPlace(lane);
  const int filter = warp / kSharers * kWarpFilters + MmaGroup(lane);
  image += channel / kFilters * Mine::kPart + channel % kFilters;
  const float* windows[Mine::kTiles];
#pragma unroll
  for (int i = 0; i < Mine::kTiles; ++i) {
    const int m = min(8 * i + MmaGroup(lane), Layer::kPositions - 1);
    windows[i] = image + m / Layer::kOutSide * Layer::kStride * Mine::kRow +
                 m % Layer::kOutSide * Layer::kStride * Mine::kPitch;
  }
  const float* low = weights + channel * kFilters + (filter + TurnOf(channel)) % kFilters;
  const float* high = weights + channel * kFilters + (filter + 8 + TurnOf(channel)) % kFilters;
#pragma unroll 1
  for (int row = 0; row < Layer::kKernel; ++row) {
#pragma unroll
    for (int column = 0; column < Layer::kKernel; ++column) {
#pragma unroll
      for (int eight = 0; eight < kEights; ++eight) {
        const int to = (column * Layer::kChannels + 8 * eight) * kFilters;
        const double a[2][2] = {{low[to], high[to]}, {low[to + kFilters], high[to + kFilters]}};
#pragma unroll
        for (int i = 0; i < Mine::kTiles; ++i) {
          const float2 b =
              *reinterpret_cast<const float2*>(windows[i] + column * Mine::kPitch + 8 * eight);
          AddDoubleMma(a[0], b.x, sums[i]);
          AddDoubleMma(a[1], b.y, sums[i]);
        }
      }
    }
#pragma unroll
    for (int i = 0; i < Mine::kTiles; ++i) windows[i] += Mine::kRow;
    low += Layer::kKernel * Layer::kChannels * kFilters;
    high += Layer::kKernel * Layer::kChannels * kFilters;
  }
}

// Stores to sums [share][position][filter].
template <typename Layer>
__device__ void StoreSums(const double (&result)[Share<Layer>::kTiles][4], float* sums) {
  using Mine = Share<Layer>;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  StoreColumns(result, Mine::kTiles, Mine::kSumsPitch, Lane(),
               sums + warp % kSharers * Mine::kSums + warp / kSharers * kWarpFilters);
}

// Adds the sums of the shares, in order. Calls store(position, filter, results): `filter` is the
// first of four filters of the block.
template <typename Layer, typename Store>
__device__ void Finish(const float* sums, const float* bias, const Store& store) {
  using Mine = Share<Layer>;
  constexpr int kQuads = kFilters / 4;
  static_assert(kThreads % kQuads == 0);
  const int n = static_cast<int>(threadIdx.x) % kQuads * 4;
  const float4 add = __ldg(reinterpret_cast<const float4*>(bias + Rank() * kFilters + n));
  for (int m = static_cast<int>(threadIdx.x) / kQuads; m < Layer::kPositions;
       m += kThreads / kQuads) {
    const float4 sum = SumOfSharers<kSharers>(sums + m * Mine::kSumsPitch + n, Mine::kSums);
    store(m, n, Relu(sum, add));
  }
}

__device__ float* OutOf(const ConvStackTraining::Pass& pass, int layer, int size) {
  return pass.out[layer] + static_cast<std::ptrdiff_t>(blockIdx.y) * size;
}

constexpr int kFirstOffset =
    kFirstRows * First::kOutSide * First::kFilters;  // of a block's results

__device__ void StartPixels(const ConvStackTraining::Pass& pass, float* memory) {
  constexpr int kImage = First::kChannels * First::kSide * First::kSide;
  ExactPixelBlock::StartPixels(
      pass.pixels + static_cast<std::ptrdiff_t>(blockIdx.y) * kImage +
          Rank() * kFirstRows * First::kStride * First::kSide,
      {.height = First::kSide, .width = First::kSide, .channels = First::kChannels},
      PixelBlocks(kFirstRows, First::kOutSide), reinterpret_cast<uint4*>(memory + Memory::kPixels));
}

// Computes this block's rows of the first layer.
__device__ void FirstLayer(const ConvStackTraining& call, const ConvStackTraining::Pass& pass,
                           float* memory) {
  const auto* pixels = reinterpret_cast<const uint4*>(memory + Memory::kPixels);
  float* here = memory + Memory::kFirst + Rank() * kFirstPart;
  float* out = OutOf(pass, 0, First::kPositions * First::kFilters) + Rank() * kFirstOffset;
  ExactPixelBlock::Convolve(
      PixelWindows(pixels, kFirstRows, First::kOutSide), memory + Memory::kFirstWeights, call.scale,
      pass.bias[0], [&](int window, int filter, const float2& two) {
        const int row = window / First::kOutSide;
        const int column = window - row * First::kOutSide;
        *reinterpret_cast<float2*>(here + row * Share<Second>::kRow +
                                   column * Share<Second>::kPitch + filter) = two;
        __stcg(reinterpret_cast<float2*>(out + window * First::kFilters + filter), two);
      });
}

// Computes this block's results of the second layer from the sums.
__device__ void FinishSecond(const ConvStackTraining::Pass& pass, float* memory) {
  float* here = memory + Memory::kSecond + Rank() * Share<Third>::kPart;
  float* out = OutOf(pass, 1, Second::kPositions * Second::kFilters) + Rank() * kFilters;
  Finish<Second>(
      memory + Memory::kSums, pass.bias[1], [&](int position, int filter, const float4& four) {
        const int row = position / Second::kOutSide;
        const int column = position - row * Second::kOutSide;
        *reinterpret_cast<float4*>(here + row * Share<Third>::kRow + column * Share<Third>::kPitch +
                                   filter) = four;
        __stcg(reinterpret_cast<float4*>(out + position * Second::kFilters + filter), four);
      });
}

__device__ void FinishThird(const ConvStackTraining::Pass& pass, const float* memory) {
  float* out = OutOf(pass, 2, Third::kPositions * Third::kFilters) + Rank() * kFilters;
  Finish<Third>(
      memory + Memory::kSums, pass.bias[2], [&](int position, int filter, const float4& four) {
        __stcg(reinterpret_cast<float4*>(out + position * Third::kFilters + filter), four);
      });
}

// Sends results that this block's threads have written to the same place of the other block.
__device__ void GiveToOther(const float* results, int count, const ArrivalBarrier& barrier) {
  FenceStores();
  __syncthreads();
  if (threadIdx.x == 0) StartCopy(1 - Rank(), results, sizeof(float) * count, barrier);
}

// Grid: blocks of an image, images, passes.
__global__ void __cluster_dims__(kBlocks, 1, 1) __launch_bounds__(kAllThreads, 1)
    ConvStackTrainingKernel(const __grid_constant__ ConvStackTraining call) {
  extern __shared__ __align__(16) float memory[];
  __shared__ Barriers barriers;
  const ConvStackTraining::Pass& pass = call.list[blockIdx.z];
  const bool loads = IsLoader();
  if (threadIdx.x == 0) PrepareBarriers(barriers);
  __syncwarp();
  ArriveAtCluster();
  if (!loads) StartPixels(pass, memory);
  AwaitPredecessors();
  if (!loads) ExactPixelBlock::StartWeights(pass.w[0], memory + Memory::kFirstWeights);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
  if (loads) {
    LoadWeights<Second>(pass.w[1], memory + Memory::kSecondWeights);
  } else {
    FirstLayer(call, pass, memory);
  }
  AwaitCluster();  // the other block has initialized its barriers
  GiveToOther(memory + Memory::kFirst + Rank() * kFirstPart, kFirstPart, barriers.first);
  if (!loads) barriers.first.Wait(0);
  ArriveAtCluster();  // all data for this block have arrived

  {
    double sums[Share<Second>::kTiles][4] = {};
    if (loads) {
      LoadWeights<Third>(pass.w[2], memory + Memory::kThirdWeights);
    } else {
      Multiply<Second>(memory + Memory::kFirst, memory + Memory::kSecondWeights, sums);
    }
    AwaitCluster();   // all data from this block have arrived
    __syncthreads();  // the sums take the place of image and weights
    if (!loads) StoreSums<Second>(sums, memory + Memory::kSums);
  }
  __syncthreads();
  if (!loads) FinishSecond(pass, memory);
  GiveToOther(memory + Memory::kSecond + Rank() * Share<Third>::kPart, Share<Third>::kPart,
              barriers.second);
  if (!loads) barriers.second.Wait(0);
  ArriveAtCluster();

  if (!loads) {
    double sums[Share<Third>::kTiles][4] = {};
    Multiply<Third>(memory + Memory::kSecond, memory + Memory::kThirdWeights, sums);
    StoreSums<Third>(sums, memory + Memory::kSums);
  }
  __syncthreads();
  if (!loads) FinishThird(pass, memory);
  AwaitCluster();
}

}  // namespace

void LaunchConvStackTraining(const ConvStackTraining& call, cudaStream_t stream) {
  LaunchKernel("convolutions of an update", ConvStackTrainingKernel,
               {.grid = dim3(kBlocks, call.count, call.passes),
                .block = kAllThreads,
                .shared_bytes = sizeof(float) * Memory::kSize,
                .stream = stream,
                .order = call.order},
               call);
}

}  // namespace uper::cuda
