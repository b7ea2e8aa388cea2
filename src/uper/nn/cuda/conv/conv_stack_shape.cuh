#pragma once

#include <cuda_runtime.h>

namespace uper::cuda::conv_stack {

// The three layers of ConvStackActing, and the share of each layer that a block of the cluster has.

inline constexpr int kWarp = 32;
inline constexpr int kThreads = 640;
inline constexpr int kWarps = kThreads / kWarp;

// A layer of the network.
template <int kSide_, int kChannels_, int kKernel_, int kStride_, int kFilters_>
struct Layer {
  static constexpr int kSide = kSide_;  // of its input
  static constexpr int kChannels = kChannels_;
  static constexpr int kKernel = kKernel_;
  static constexpr int kStride = kStride_;
  static constexpr int kFilters = kFilters_;
  static constexpr int kTaps = kKernel * kKernel;
  static constexpr int kOutSide = (kSide - kKernel) / kStride + 1;
  static constexpr int kPositions = kOutSide * kOutSide;
};
using First = Layer<84, 4, 8, 4, 32>;
using Second = Layer<First::kOutSide, First::kFilters, 4, 2, 64>;
using Third = Layer<Second::kOutSide, Second::kFilters, 3, 1, 64>;

// Results of one of kBlocks blocks that split the filters of a layer: [position][filter].
template <typename Layer, int kBlocks>
struct Results {
  static constexpr int kFilters = Layer::kFilters / kBlocks;
  static constexpr int kResults = Layer::kPositions * kFilters;
  // Floats between the results of two blocks: the 32 channels of 32 lanes lie in 32 banks.
  static constexpr int kSlot =
      kResults + (Layer::kPositions * kFilters * (kWarp - 1) + kFilters) % kWarp;
  static_assert(kFilters % 4 == 0 && kSlot % 4 == 0);
};

// The share of such a block in a layer after the first: filters four at a time.
template <typename Layer, int kBlocks>
struct Share : Results<Layer, kBlocks> {
  static constexpr int kFours = Share::kFilters / 4;
  static constexpr int kWeights = Layer::kTaps * Layer::kChannels * Share::kFilters;
};

__device__ inline int Lane() { return static_cast<int>(threadIdx.x) % kWarp; }
// Broadcast from one lane, so that the compiler can rely on the same value in all lanes.
__device__ inline int Warp() { return __shfl_sync(~0U, static_cast<int>(threadIdx.x) / kWarp, 0); }
__device__ inline int Rank() { return static_cast<int>(blockIdx.x); }

}  // namespace uper::cuda::conv_stack
