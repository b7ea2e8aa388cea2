#pragma once

#include <cuda_pipeline_primitives.h>

#include "uper/nn/cuda/conv/conv_stack_shape.cuh"
#include "uper/nn/cuda/ptx/relu.cuh"

namespace uper::cuda::conv_stack {

// The layers after the first, in plain fp32. A lane handles one channel; sums are added over lanes.

// Weights of these layers, four filters at a time: [tap][32 channels][four][channel].
template <typename Layer, int kBlocks>
__device__ void StartWeights(const float* w, float* weights) {
  using Mine = Share<Layer, kBlocks>;
  for (int i = static_cast<int>(threadIdx.x); i < Mine::kWeights / 4; i += kThreads) {
    const int row = i / Mine::kFours;
    const int four = i % Mine::kFours;
    const int to = (row / kWarp * Mine::kFours + four) * kWarp + row % kWarp;
    __pipeline_memcpy_async(weights + 4 * to,
                            w + row * Layer::kFilters + Rank() * Mine::kFilters + 4 * four, 16);
  }
}

// The values of a group that a lane keeps: from `first` to `end`, in its first places.
struct Held {
  int first, end;
};

// Adds up values over 2 * kBit lanes. Of two lanes that differ in one bit, the lower keeps the
// first half of the values and the other the second half. This repeats down to the lowest bit.
template <int kBit, int kCount, int kSize>
__device__ void AddOverLanes(float (&values)[kSize], Held& held) {
  constexpr int kHalf = (kCount + 1) / 2;
  const bool upper = (Lane() & kBit) != 0;
#pragma unroll
  for (int i = 0; i < kHalf; ++i) {
    const float second = i + kHalf < kCount ? values[i + kHalf] : 0.0F;
    const float given = __shfl_xor_sync(~0U, upper ? values[i] : second, kBit);
    values[i] = (upper ? second : values[i]) + given;
  }
  if (upper) {
    held.first += kHalf;
  } else {
    held.end = min(held.end, held.first + kHalf);
  }
  if constexpr (kBit > 1) AddOverLanes<kBit / 2, kHalf>(values, held);
}

// Sums over all lanes, [filter][position]; calls store(position, filter, sum).
template <int kPositions, int kSize, typename Store>
__device__ void StoreSums(float (&sums)[kSize], const Store& store) {
  Held held{.first = 0, .end = kSize};
  AddOverLanes<kWarp / 2, kSize>(sums, held);
  constexpr int kMost = (kSize + kWarp - 1) / kWarp;
#pragma unroll
  for (int i = 0; i < kMost; ++i) {
    const int at = held.first + i;
    if (at < held.end) store(at / kPositions, at % kPositions, sums[i]);
  }
}

// sums[filter][position] += value[position] * w, for four filters.
template <int kPositions, int kSize>
__device__ void AddFour(const float (&values)[kPositions], const float4& w, float (&sums)[kSize]) {
#pragma unroll
  for (int p = 0; p < kPositions; ++p) {
    float* sum = sums + p;
    sum[0] = fmaf(values[p], w.x, sum[0]);
    sum[kPositions] = fmaf(values[p], w.y, sum[kPositions]);
    sum[2 * kPositions] = fmaf(values[p], w.z, sum[2 * kPositions]);
    sum[3 * kPositions] = fmaf(values[p], w.w, sum[3 * kPositions]);
  }
}

// Adds what a lane's channel contributes to a row of positions through one row of their windows.
// `line`: address of that row, with pixels kPixel floats apart; `weights`: taps are kTap apart.
template <typename Layer, int kPixel, int kTap, int kSize>
__device__ void AddRow(const float* line, const float4* weights, float (&sums)[kSize]) {
  constexpr int kStep = Layer::kStride;
  constexpr int kRow = Layer::kOutSide;
  constexpr int kTaps = Layer::kKernel / kStep;  // one stride apart: they see the same pixels
  static_assert(Layer::kKernel % kStep == 0);
#pragma unroll
  for (int phase = 0; phase < kStep; ++phase) {
    float a[kRow + kTaps - 1];
#pragma unroll
    for (int i = 0; i < kRow + kTaps - 1; ++i) a[i] = line[(phase + i * kStep) * kPixel];
#pragma unroll
    for (int tap = 0; tap < kTaps; ++tap) {
      float values[kRow];
#pragma unroll
      for (int x = 0; x < kRow; ++x) values[x] = a[x + tap];
      AddFour(values, weights[(phase + tap * kStep) * kTap], sums);
    }
  }
}

// Row y of four filters, from the results of the previous layer: the contribution of the lane's
// channels. In describes how those results are stored.
template <typename Layer, typename In, int kBlocks, int kSize>
__device__ void AddTaps(const float* in, const float* weights, int y, int four,
                        float (&sums)[kSize]) {
  constexpr int kFours = Share<Layer, kBlocks>::kFours;
  constexpr int kTap = Layer::kChannels * kFours;
#pragma unroll 1
  for (int group = 0; group < Layer::kChannels / kWarp; ++group) {
    const int channel = group * kWarp + Lane();
    const float* at = in + channel / In::kFilters * In::kSlot + channel % In::kFilters;
    const auto* w =
        reinterpret_cast<const float4*>(weights) + (group * kFours + four) * kWarp + Lane();
#pragma unroll 1
    for (int row = 0; row < Layer::kKernel; ++row) {
      AddRow<Layer, In::kFilters, kTap>(
          at + (y * Layer::kStride + row) * Layer::kSide * In::kFilters,
          w + row * Layer::kKernel * kTap, sums);
    }
  }
}

// A layer after the first. A warp computes every kWarps-th row of four filters. Calls
// store(position, filter of the block, result).
template <typename Layer, typename In, int kBlocks, typename Store>
__device__ void OtherLayer(const float* in, const float* weights, const float* bias,
                           const Store& store) {
  using Mine = Share<Layer, kBlocks>;
#pragma unroll 1
  for (int item = Warp(); item < Layer::kOutSide * Mine::kFours; item += kWarps) {
    const int y = item / Mine::kFours;
    const int four = item % Mine::kFours;
    float sums[4 * Layer::kOutSide] = {};
    AddTaps<Layer, In, kBlocks>(in, weights, y, four, sums);
    StoreSums<Layer::kOutSide>(sums, [&](int filter, int x, float sum) {
      const int f = 4 * four + filter;
      store(y * Layer::kOutSide + x, f, Relu(sum + __ldg(bias + Rank() * Mine::kFilters + f)));
    });
  }
}

}  // namespace uper::cuda::conv_stack
