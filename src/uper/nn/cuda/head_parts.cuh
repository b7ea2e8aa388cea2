#pragma once

#include "uper/nn/cuda/head_kernels.h"
#include "uper/nn/cuda/reductions.cuh"

namespace uper {

// What the kernels of the head share.

inline constexpr int kHeadThreads = 256;
inline constexpr int kHeadWarps = kHeadThreads / kWarpSize;
inline constexpr int kSamples = 8;  // of one action that a thread works on at a time

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

// list: the samples that `belongs` accepts, ascending; returns how many. The first warp works.
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

// A lane has every 32nd of a tile's outputs: 201 fit into one tile.
inline constexpr int kLaneOutputs = 7;
inline constexpr int kTileOutputs = kLaneOutputs * kWarpSize;
// Rows of weights that a warp fetches at a time: enough to keep memory busy.
inline constexpr int kFetch = 4;

// Where a lane finds its outputs of a tile. In the place of those that are not there it reads the
// tile's last one, which is cheaper than to ask every time. kWhole: the tile is a whole row, and
// only the last of a lane's outputs can be missing.
template <int kLane, bool kWhole>
struct LaneOutputs {
  int lane;
  int left;   // outputs from the tile's first on
  int first;  // of the lane
  int last;   // of the lane, from `first` on

  __device__ LaneOutputs(int lane, int left)
      : lane(lane),
        left(left),
        first(min(lane, left - 1)),
        last(min(lane + (kLane - 1) * kWarpSize, left - 1) - first) {}

  __device__ bool IsThere(int j) const {
    return (kWhole && j + 1 < kLane) || lane + j * kWarpSize < left;
  }
  // From `first` on.
  __device__ int At(int j) const {
    if (j + 1 == kLane) return last;
    return kWhole ? j * kWarpSize : min(lane + j * kWarpSize, left - 1) - first;
  }
};

// Weights of one lane. rows: its first output of the first row; rows lie `stride` apart, and the
// last of `count` is read again in the place of those that are not there.
template <int kLane, bool kWhole>
__device__ void FetchRows(const float* rows, int stride, int count,
                          const LaneOutputs<kLane, kWhole>& outputs, float (&w)[kFetch][kLane]) {
#pragma unroll
  for (int row = 0; row < kFetch; ++row) {
#pragma unroll
    for (int j = 0; j < kLane; ++j) w[row][j] = __ldg(rows + outputs.At(j));
    if (row + 1 < count) rows += stride;
  }
}

// The kernel for rows of so many outputs: made for those of one tile by their length, and for
// longer ones.
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

}  // namespace uper
