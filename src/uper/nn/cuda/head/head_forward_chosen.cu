#include <algorithm>

#include "uper/base/arithmetic.h"
#include "uper/base/check.h"
#include "uper/nn/cuda/head/head_common.cuh"
#include "uper/nn/cuda/head/head_kernels.h"
#include "uper/nn/cuda/ptx/bulk_copy.cuh"
#include "uper/nn/cuda/ptx/reductions.cuh"
#include "uper/nn/cuda/runtime/launch.cuh"

// Outputs of chosen actions. A block handles a group of up to kSamples samples with the same action
// of one member. It handles one part of the hidden units, which its warps split. A warp loads the
// weights of its units itself, several fetches ahead, and waits for other warps only before the
// sums are added up. The additions of an output have one order: units of a warp, warps, parts.

namespace uper::cuda {
namespace {

constexpr int kWarps = 4;
constexpr int kThreads = kWarps * kWarpSize;
constexpr int kBlocksPerProcessor = 4;
// Hidden units per fetch. Weights of four units are whole groups of 16 bytes if those of an action
// are, so that bulk copies can move them.
constexpr int kFetch = 4;
constexpr int kStages = 4;  // fetches of a warp that are loaded or used at a time
static_assert(kFetch * kSamples == kWarpSize, "a lane has one hidden unit of one sample");

struct Selections {
  HeadForwardChosen list[kMaxSelections];
};

// The part of the result that a block computes.
struct SelectPlace {
  int member;
  int group;  // among the member's samples
  int part;
  int first_output;
};

// Upper bound on the groups of samples with the same action, for one member.
int MostGroups(const HeadShape& s, int batch, bool all_actions) {
  const int groups = CeilDiv(batch, kSamples);
  return all_actions ? s.actions * groups : std::min(batch, s.actions + groups - 1);
}

struct SampleGroup {
  int action = 0;
  int count = 0;  // 0: there is no such group
};

// Over all samples and actions.
__device__ SampleGroup FindAnyGroup(int batch, int index, int* list) {
  const int groups = (batch + kSamples - 1) / kSamples;
  const int first = index % groups * kSamples;
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  if (lane < kSamples) list[lane] = first + lane;
  __syncwarp();
  return {.action = index / groups, .count = min(kSamples, batch - first)};
}

// Finds the index-th group of a member and the list of its samples; called by one warp. The number
// of samples before a group's first sample with the same action is a multiple of kSamples. Groups
// have the order of their first samples.
__device__ SampleGroup FindGroup(const HeadForwardChosen& selection, int batch, int member,
                                 int index, int* list) {
  if (selection.actions == nullptr) return FindAnyGroup(batch, index, list);
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const unsigned lower_lanes = (1U << lane) - 1;
  const int* actions = selection.actions + member * selection.member_stride;
  const auto action_of = [&](int b) {  // for a sample that does not exist: no action
    return b < batch ? __ldg(actions + b * selection.sample_stride) : -1;
  };
  int first = 0;
  int leader = -1;
  int action = 0;
  for (; first < batch; first += kWarpSize) {
    const int mine = action_of(first + lane);
    int before = __popc(__match_any_sync(kAllLanes, mine) & lower_lanes);
    for (int b = 0; b < first; ++b) before += action_of(b) == mine ? 1 : 0;
    const bool leads = mine >= 0 && before % kSamples == 0;
    const unsigned leaders = __ballot_sync(kAllLanes, leads);
    leader = __ffs(static_cast<int>(
                 __ballot_sync(kAllLanes, leads && __popc(leaders & lower_lanes) == index))) -
             1;
    if (leader >= 0) {
      action = __shfl_sync(kAllLanes, mine, leader);
      break;
    }
    index -= __popc(leaders);
  }
  if (leader < 0) return {};
  int count = 0;
  for (int start = first + leader; start < batch && count < kSamples; start += kWarpSize) {
    const bool mine = action_of(start + lane) == action;
    const unsigned votes = __ballot_sync(kAllLanes, mine);
    const int place = count + __popc(votes & lower_lanes);
    if (mine && place < kSamples) list[place] = start + lane;
    count += __popc(votes);
  }
  __syncwarp();
  return {.action = action, .count = min(count, kSamples)};
}

// Loads the weights of a warp's units into shared memory.
struct WeightStream {
  const float* from;  // first unit, first output
  int units;
  int width;             // outputs
  int stride;            // from unit to unit
  float* stages;         // [stage][unit of a fetch][output]
  ArrivalBarrier* here;  // [stage]
  std::uint64_t cache_policy;
  bool whole_groups;  // every fetch consists of whole groups of 16 bytes

  __device__ int Fetches() const { return (units + kFetch - 1) / kFetch; }
  __device__ int UnitsOf(int fetch) const { return min(kFetch, units - fetch * kFetch); }
  __device__ float* Stage(int fetch) const { return stages + fetch % kStages * (kFetch * width); }

  __device__ void Initialize() {
    whole_groups = width == stride && units % kFetch * width % 4 == 0 &&
                   reinterpret_cast<std::uintptr_t>(from) % 16 == 0;
    if (threadIdx.x % kWarpSize == 0) {
      for (int i = 0; i < kStages; ++i) here[i].Initialize(1);
      FenceArrivals();
    }
    __syncwarp();
  }

  // REQUIRES: all lanes have read the previous weights of the stage.
  __device__ void Start(int fetch) const {
    if (fetch >= Fetches()) return;
    const float* source = from + static_cast<std::ptrdiff_t>(fetch) * kFetch * stride;
    const int size = UnitsOf(fetch) * width;
    float* to = Stage(fetch);
    ArrivalBarrier& barrier = here[fetch % kStages];
    const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
    if (whole_groups) {
      if (lane > 0) return;
      const unsigned bytes = static_cast<unsigned>(size * sizeof(float));
      barrier.Expect(bytes);
      StartLoad(to, source, bytes, cache_policy, barrier);
      return;
    }
    for (int i = lane; i < size; i += kWarpSize) {
      to[i] = __ldg(source + i / width * stride + i % width);
    }
    __syncwarp();
    if (lane == 0) barrier.Arrive();
  }

  __device__ void Await(int fetch) const { here[fetch % kStages].Wait(fetch / kStages); }
};

// sums[sample][output] += unit of the sample * weight. Where outputs do not exist, a lane reads
// other values, which are never used.
template <int kCount, int kLane>
__device__ void AddUnit(const float* weights, const float (&units)[kSamples],
                        float (&sums)[kSamples][kLane]) {
  float values[kCount];
#pragma unroll
  for (int i = 0; i < kCount; i += 4) {
    *reinterpret_cast<float4*>(values + i) = *reinterpret_cast<const float4*>(units + i);
  }
#pragma unroll
  for (int j = 0; j < kLane; ++j) {
    const float weight = weights[j * kWarpSize];
#pragma unroll
    for (int i = 0; i < kCount; ++i) sums[i][j] = fmaf(values[i], weight, sums[i][j]);
  }
}

template <int kCount, int kLane>
__device__ void AddUnits(const float* weights, int count, int width,
                         const float (&units)[kFetch][kSamples], float (&sums)[kSamples][kLane]) {
  if (count == kFetch) {
#pragma unroll
    for (int i = 0; i < kFetch; ++i) AddUnit<kCount>(weights + i * width, units[i], sums);
  } else {
#pragma unroll 1
    for (int i = 0; i < count; ++i) AddUnit<kCount>(weights + i * width, units[i], sums);
  }
}

// A warp's shared memory besides the weights.
struct WarpMemory {
  float units[kFetch][kSamples];
  ArrivalBarrier here[kStages];
  int list[kSamples];  // the group's samples
};

// A warp's sums over its units. hidden: address of the first unit of sample 0; samples are `stride`
// apart.
template <int kLane>
__device__ void SumUnits(const WeightStream& stream, const float* hidden, int stride, int count,
                         WarpMemory& memory, float (&sums)[kSamples][kLane]) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const int sample = lane / kFetch;
  const int unit = lane % kFetch;
  hidden += (sample < count ? memory.list[sample] : 0) * stride;
  const auto value_of = [&](int fetch) {
    const int at = fetch * kFetch + unit;
    return sample < count && at < stream.units ? __ldg(hidden + at) : 0.0F;
  };
  float value = value_of(0);
#pragma unroll 1
  for (int fetch = 0; fetch < stream.Fetches(); ++fetch) {
    memory.units[unit][sample] = value;
    value = value_of(fetch + 1);
    stream.Await(fetch);
    __syncwarp();
    const float* weights = stream.Stage(fetch) + lane;
    if (count <= kSamples / 2) {
      AddUnits<kSamples / 2>(weights, stream.UnitsOf(fetch), stream.width, memory.units, sums);
    } else {
      AddUnits<kSamples>(weights, stream.UnitsOf(fetch), stream.width, memory.units, sums);
    }
    __syncwarp();
    stream.Start(fetch + kStages);
  }
}

// Adds the sums of the warps: warp_sums [warp, sample, kLane * kWarpSize]; warps are `stride`
// apart.
template <int kLane>
__device__ void PutSums(const HeadShape& s, int batch, const HeadForwardChosen& selection,
                        const SelectPlace& place, const SampleGroup& group, const int* list,
                        const float* warp_sums, int stride) {
  const int width = min(kLane * kWarpSize, s.outputs - place.first_output);
  const bool all = selection.actions == nullptr;
  const int rows = all ? s.actions * s.members : s.members;
  const int row = all ? group.action * s.members + place.member : place.member;
  for (int i = 0; i < group.count; ++i) {
    const std::ptrdiff_t at =
        (static_cast<std::ptrdiff_t>(place.part) * batch + list[i]) * rows + row;
    float* to = selection.parts + at * s.outputs + place.first_output;
    for (int output = static_cast<int>(threadIdx.x); output < width; output += kThreads) {
      float sum = 0;
#pragma unroll
      for (int warp = 0; warp < kWarps; ++warp) {
        sum += warp_sums[warp * stride + i * kLane * kWarpSize + output];
      }
      to[output] = sum;
    }
  }
}

// Floats of shared memory that a warp uses for its weights and then for its sums. tile: the maximum
// number of outputs per block.
__host__ __device__ int WarpRoom(int tile, int outputs) {
  const int stages = kStages * kFetch * (outputs < tile ? outputs : tile);
  const int sums = kSamples * tile;
  return stages > sums ? stages : sums;
}

// Grid: groups of samples x members, parts x tiles of outputs, selections.
template <int kLane>
__global__ void __launch_bounds__(kThreads, kBlocksPerProcessor)
    ForwardChosenKernel(HeadShape s, int batch, const __grid_constant__ Selections selections) {
  extern __shared__ __align__(16) float rooms[];
  __shared__ __align__(16) WarpMemory memories[kWarps];
  const HeadForwardChosen& selection = selections.list[blockIdx.z];
  const SelectPlace place{
      .member = static_cast<int>(blockIdx.x) % s.members,
      .group = static_cast<int>(blockIdx.x) / s.members,
      .part = static_cast<int>(blockIdx.y) % kHeadParts,
      .first_output = static_cast<int>(blockIdx.y) / kHeadParts * kLane * kWarpSize};
  const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  WarpMemory& memory = memories[warp];
  if (!selection.actions_ready) AwaitPredecessor();
  const SampleGroup group = FindGroup(selection, batch, place.member, place.group, memory.list);
  if (group.count == 0) return;  // other blocks await the previous kernel: every batch has samples
  const int most_units = (s.hidden + kHeadParts * kWarps * kFetch - 1) /
                         (kHeadParts * kWarps * kFetch) * kFetch;  // per warp
  const int begin = min((place.part * kWarps + warp) * most_units, s.hidden);
  float* room = rooms + warp * WarpRoom(kLane * kWarpSize, s.outputs);
  WeightStream stream{.from = selection.w + BlockAt(s, group.action, place.member) +
                              begin * s.outputs + place.first_output,
                      .units = min(most_units, s.hidden - begin),
                      .width = min(kLane * kWarpSize, s.outputs - place.first_output),
                      .stride = s.outputs,
                      .stages = room,
                      .here = memory.here,
                      .cache_policy = CachePolicy(selection.w_read_again ? CacheHint::kNormal
                                                                         : CacheHint::kEvictFirst),
                      .whole_groups = false};
  stream.Initialize();
  for (int i = 0; i < kStages; ++i) stream.Start(i);
  if (selection.actions_ready) AwaitPredecessor();
  float sums[kSamples][kLane] = {};
  SumUnits(stream, selection.hidden + MemberUnits(s, place.member) + begin, s.hidden_total(),
           group.count, memory, sums);
#pragma unroll
  for (int i = 0; i < kSamples; ++i) {
    if (i >= group.count) break;
#pragma unroll
    for (int j = 0; j < kLane; ++j) room[(i * kLane + j) * kWarpSize + lane] = sums[i][j];
  }
  __syncthreads();
  PutSums<kLane>(s, batch, selection, place, group, memory.list, rooms,
                 WarpRoom(kLane * kWarpSize, s.outputs));
}

struct SelectChoice {
  void (*kernel)(HeadShape, int, Selections);
  int tile;
};
template <int kLane, bool kWhole>
struct SelectKernels {
  static SelectChoice Get() { return {ForwardChosenKernel<kLane>, kLane * kWarpSize}; }
};

}  // namespace

void LaunchForwardChosen(const HeadShape& shape, int batch,
                         std::span<const HeadForwardChosen> selections, cudaStream_t stream,
                         LaunchOrder order) {
  UPER_CHECK(!selections.empty() && selections.size() <= kMaxSelections,
             "1 to kMaxSelections selections per call");
  Selections list;
  std::copy(selections.begin(), selections.end(), list.list);
  int groups = 0;
  for (const HeadForwardChosen& selection : selections) {
    groups = std::max(groups, MostGroups(shape, batch, selection.actions == nullptr));
  }
  const SelectChoice chosen = KernelFor<SelectKernels>(shape.outputs);
  const dim3 grid(groups * shape.members, kHeadParts * CeilDiv(shape.outputs, chosen.tile),
                  static_cast<unsigned>(selections.size()));
  // Lanes may read up to one tile beyond the last weights.
  const std::size_t floats = kWarps * WarpRoom(chosen.tile, shape.outputs) + chosen.tile;
  LaunchKernel("outputs of the head", chosen.kernel,
               {grid, kThreads, sizeof(float) * floats, stream, order}, shape, batch, list);
}

}  // namespace uper::cuda
