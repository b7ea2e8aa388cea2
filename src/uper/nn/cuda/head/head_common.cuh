#pragma once

#include "uper/nn/cuda/head/head_kernels.h"
#include "uper/nn/cuda/ptx/reductions.cuh"

namespace uper::cuda {

// Constants and functions that the kernels of the head share.

inline constexpr int kHeadThreads = 256;
inline constexpr int kHeadWarps = kHeadThreads / kWarpSize;
inline constexpr int kSamples = 8;  // samples with one action that a thread handles at a time

__device__ inline std::ptrdiff_t BlockAt(const HeadShape& s, int action, int member) {
  return (static_cast<std::ptrdiff_t>(action) * s.members + member) * s.hidden * s.outputs;
}

__device__ inline int MemberUnits(const HeadShape& s, int member) {
  return s.separate_hidden ? member * s.hidden : 0;
}

__device__ inline float BiasAt(const HeadShape& s, const float* bias, int action, int member,
                               int m) {
  return __ldg(bias + (s.shared_bias ? 0 : (action * s.members + member) * s.outputs + m));
}

__device__ inline bool Learns(const std::uint64_t* masks, int b, int member) {
  return (__ldg(reinterpret_cast<const unsigned long long*>(masks) + b) >> member & 1) != 0;
}

// The mean of a weight over members that share the hidden layer, in the order of the members.
__device__ inline void PutMeanOfMembers(const HeadShape& s,
                                        const HeadMeanWeightPointers& mean_weights, int action,
                                        int unit) {
  float sum = 0;
#pragma unroll 10
  for (int k = 0; k < s.members; ++k) {
    sum += __ldcg(mean_weights.member_weights + (k * s.actions + action) * s.hidden + unit);
  }
  mean_weights.ensemble_weights[action * s.hidden + unit] = sum / static_cast<float>(s.members);
}

// list: the samples that `belongs` accepts, in ascending order; returns their number. Only the
// first warp works.
template <typename Belongs>
__device__ int ListSamples(int batch, int* list, int* count, const Belongs& belongs) {
  if (threadIdx.x < kWarpSize) {
    int found = 0;
    for (int first = 0; first < batch; first += kWarpSize) {
      const int b = first + static_cast<int>(threadIdx.x);
      const bool mine = b < batch && belongs(b);
      const unsigned votes = __ballot_sync(kAllLanes, mine);
      if (mine) list[found + __popc(votes & ((1U << threadIdx.x) - 1))] = b;
      found += __popc(votes);
    }
    if (threadIdx.x == 0) *count = found;
  }
  __syncthreads();
  return *count;
}

// A lane handles every 32nd output of a tile; 201 outputs fit into one tile.
inline constexpr int kLaneOutputs = 7;
inline constexpr int kTileOutputs = kLaneOutputs * kWarpSize;

// The kernel for rows of this many outputs. Rows that fit into one tile have a kernel for their
// length; longer rows share one.
template <template <int, bool> typename Kernels>
auto KernelFor(int outputs) {
  switch ((outputs + kWarpSize - 1) / kWarpSize) {
    case 1:
      return Kernels<1, true>::Get();
    case 2:
      return Kernels<2, true>::Get();
    case 3:
      return Kernels<3, true>::Get();
    case 4:
      return Kernels<4, true>::Get();
    case 5:
      return Kernels<5, true>::Get();
    case 6:
      return Kernels<6, true>::Get();
    case kLaneOutputs:
      return Kernels<kLaneOutputs, true>::Get();
    default:
      return Kernels<kLaneOutputs, false>::Get();
  }
}

}  // namespace uper::cuda
