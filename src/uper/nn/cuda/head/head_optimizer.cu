#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "uper/nn/cuda/head/head_common.cuh"
#include "uper/nn/cuda/optimizer/optimizer_kernels.h"
#include "uper/nn/cuda/optimizer/optimizer_step.cuh"
#include "uper/nn/cuda/ptx/bulk_copy.cuh"
#include "uper/nn/cuda/ptx/reductions.cuh"
#include "uper/nn/cuda/runtime/launch.cuh"

// Updates the head's weights. This kernel is memory-bound. Few warps with little shared memory
// leave room for kernels that compute. Each warp works alone: a bulk copy loads some weights, the
// warp updates them in place, and a bulk copy stores them. Together the warps pass through memory
// from its beginning to its end.

namespace uper::cuda {
namespace {

constexpr int kWarps = 4;
constexpr int kThreads = kWarps * kWarpSize;
// Hidden units per fetch. Weights of four units are whole groups of 16 bytes if those of an action
// are, so that bulk copies can move them.
constexpr int kUnits = kHeadUpdateUnits;
static_assert(kUnits == 4);

struct HeadUpdate {
  UpdateRules rules;
  OptimizerPass pass = OptimizerPass::kFinal;
  HeadShape shape;
  HeadGradient gradient;
  ParameterUpdate weights;
  const UpdateState* state = nullptr;
  HeadMeanWeightPointers mean_weights;
  bool whole_groups = false;  // every fetch consists of whole groups of 16 bytes
};

// kUnits hidden units of one (action, member).
struct HeadGroup {
  int action, member, first_unit, units;
  int index;  // the same for all members

  __device__ HeadGroup(const HeadShape& s, int item) {
    const int groups = HeadUpdateGroups(s);
    const int block = item / groups;
    const int group = item - block * groups;
    action = block / s.members;
    member = block - action * s.members;
    first_unit = group * kUnits;
    units = min(kUnits, s.hidden - first_unit);
    index = action * groups + group;
  }
};

// One fetch: a tile of the group's outputs.
struct HeadPiece {
  int units;
  int first_output, width;
  std::ptrdiff_t at;  // its first weight

  __device__ HeadPiece(const HeadShape& s, const HeadGroup& group, int first, int tile)
      : units(group.units),
        first_output(first),
        width(min(tile, s.outputs - first)),
        at(BlockAt(s, group.action, group.member) +
           static_cast<std::ptrdiff_t>(group.first_unit) * s.outputs + first) {}
  __device__ unsigned bytes() const { return static_cast<unsigned>(units * width * sizeof(float)); }
};

// Whether a lane has its i-th output. kWhole: pieces are whole rows, and only the last output can
// be missing.
template <int kLane, bool kWhole>
__device__ bool IsThere(const HeadPiece& piece, int lane, int i) {
  return (kWhole && i + 1 < kLane) || lane + i * kWarpSize < piece.width;
}

// Weights and moments of one fetch in shared memory: p, m and v, each [unit][output].
struct Stage {
  float* floats;
  int room;  // floats of one of the three arrays

  __device__ float* p() const { return floats; }
  __device__ float* m() const { return floats + room; }
  __device__ float* v() const { return floats + 2 * room; }
};

// Copies rows of a piece, which are `from_step` and `to_step` floats apart.
__device__ void CopyRows(const float* from, int from_step, const HeadPiece& piece, int lane,
                         float* to, int to_step) {
#pragma unroll 1
  for (int u = 0; u < piece.units; ++u) {
#pragma unroll 1
    for (int i = lane; i < piece.width; i += kWarpSize) {
      to[u * to_step + i] = from[u * from_step + i];
    }
  }
}

// The moments are not read again before the next update.
struct CachePolicies {
  std::uint64_t weights = CachePolicy(CacheHint::kNormal);
  std::uint64_t moments = CachePolicy(CacheHint::kEvictFirst);
};

// Starts to load a piece after the previous piece has been stored.
__device__ void Fetch(const HeadUpdate& update, const HeadPiece& piece, const Stage& to,
                      ArrivalBarrier& here, int lane) {
  const ParameterBlock& from = update.weights.from;
  if (update.whole_groups) {
    if (lane > 0) return;
    AwaitStoresRead();
    const CachePolicies policies;
    here.Expect(3 * piece.bytes());
    StartLoad(to.p(), from.p + piece.at, piece.bytes(), policies.weights, here);
    StartLoad(to.m(), from.m + piece.at, piece.bytes(), policies.moments, here);
    StartLoad(to.v(), from.v + piece.at, piece.bytes(), policies.moments, here);
    return;
  }
  const int outputs = update.shape.outputs;
  CopyRows(from.p + piece.at, outputs, piece, lane, to.p(), piece.width);
  CopyRows(from.m + piece.at, outputs, piece, lane, to.m(), piece.width);
  CopyRows(from.v + piece.at, outputs, piece, lane, to.v(), piece.width);
  __syncwarp();
  if (lane == 0) here.Arrive();
}

// Starts to store a piece that all lanes have updated.
__device__ void Put(const HeadUpdate& update, const HeadPiece& piece, const Stage& from, int lane) {
  const ParameterBlock& to = update.weights.to;
  FenceStores();
  __syncwarp();
  if (update.whole_groups) {
    if (lane > 0) return;
    const CachePolicies policies;
    StartStore(to.p + piece.at, from.p(), piece.bytes(), policies.weights);
    StartStore(to.m + piece.at, from.m(), piece.bytes(), policies.moments);
    StartStore(to.v + piece.at, from.v(), piece.bytes(), policies.moments);
    CommitStores();
    return;
  }
  const int outputs = update.shape.outputs;
  CopyRows(from.p(), piece.width, piece, lane, to.p + piece.at, outputs);
  CopyRows(from.m(), piece.width, piece, lane, to.m + piece.at, outputs);
  CopyRows(from.v(), piece.width, piece, lane, to.v + piece.at, outputs);
  __syncwarp();
}

// The term of a sample in the gradient: its hidden units times the derivatives of its outputs.
template <int kLane>
struct SampleTerm {
  float units[kUnits];
  float d_out[kLane];

  template <bool kWhole>
  __device__ SampleTerm(const HeadUpdate& update, const HeadGroup& group, const HeadPiece& piece,
                        int b, int lane, std::bool_constant<kWhole>) {
    const HeadShape& s = update.shape;
    const float* hidden = update.gradient.hidden + b * s.hidden_total() +
                          MemberUnits(s, group.member) + group.first_unit;
    if (update.whole_groups) {
      const float4 four = __ldg(reinterpret_cast<const float4*>(hidden));
      units[0] = four.x;
      units[1] = four.y;
      units[2] = four.z;
      units[3] = four.w;
    } else {
#pragma unroll
      for (int u = 0; u < kUnits; ++u) units[u] = u < piece.units ? __ldg(hidden + u) : 0.0F;
    }
    const float* d = update.gradient.d_out + (b * s.members + group.member) * s.outputs +
                     piece.first_output + lane;
#pragma unroll
    for (int i = 0; i < kLane; ++i) {
      d_out[i] = IsThere<kLane, kWhole>(piece, lane, i) ? __ldg(d + i * kWarpSize) : 0.0F;
    }
  }

  __device__ void AddTo(float (&g)[kUnits][kLane]) const {
#pragma unroll
    for (int u = 0; u < kUnits; ++u) {
#pragma unroll
      for (int i = 0; i < kLane; ++i) g[u][i] = fmaf(units[u], d_out[i], g[u][i]);
    }
  }
};

// The samples, among the 32 from `first` on, that contribute to the gradient of an (action,
// member), as a bit mask.
__device__ unsigned LearnersOf(const HeadGradient& gradient, const HeadGroup& group, int first,
                               int lane) {
  const int mine = first + lane;
  return __ballot_sync(kAllLanes, mine < gradient.batch &&
                                      __ldg(gradient.actions + mine) == group.action &&
                                      Learns(gradient.masks, mine, group.member));
}

// Whether the gradient is not entirely zero.
__device__ bool HasGradient(const HeadGradient& gradient, const HeadGroup& group, int lane) {
  for (int first = 0; first < gradient.batch; first += kWarpSize) {
    if (LearnersOf(gradient, group, first, lane) != 0) return true;
  }
  return false;
}

// g [unit][output of the lane]: the piece's gradient, samples in ascending order. Two samples are
// loaded at a time.
template <int kLane, bool kWhole>
__device__ void AddGradient(const HeadUpdate& update, const HeadGroup& group,
                            const HeadPiece& piece, int lane, float (&g)[kUnits][kLane]) {
  const HeadGradient& gradient = update.gradient;
  const std::bool_constant<kWhole> whole;
  for (int first = 0; first < gradient.batch; first += kWarpSize) {
    const auto take = [&](unsigned& left) {
      const int b = first + __ffs(static_cast<int>(left)) - 1;
      left &= left - 1;
      return b;
    };
    unsigned left = LearnersOf(gradient, group, first, lane);
    while (left != 0) {
      const SampleTerm<kLane> one(update, group, piece, take(left), lane, whole);
      if (left == 0) {
        one.AddTo(g);
        break;
      }
      const SampleTerm<kLane> two(update, group, piece, take(left), lane, whole);
      one.AddTo(g);
      two.AddTo(g);
    }
  }
}

// Updates in place. Adds the lane's new weights of each unit to `sums`.
template <bool kAdam, int kLane, bool kWhole>
__device__ void UpdatePiece(const HeadUpdate& update, const UpdateScales& scales,
                            const HeadPiece& piece, const Stage& stage, int lane,
                            const float (&g)[kUnits][kLane], float (&sums)[kUnits]) {
  int place = lane;
#pragma unroll
  for (int u = 0; u < kUnits; ++u) {
    if (u == piece.units) break;
#pragma unroll
    for (int i = 0; i < kLane; ++i) {
      if (!IsThere<kLane, kWhole>(piece, lane, i)) continue;
      float& p = stage.p()[place + i * kWarpSize];
      float& m = stage.m()[place + i * kWarpSize];
      float& v = stage.v()[place + i * kWarpSize];
      float new_p = p, new_m = m, new_v = v;
      UpdateParameter<kAdam>(update.rules, scales, g[u][i] * scales.gradient_scale, new_p, new_m,
                             new_v);
      p = new_p;
      m = new_m;
      v = new_v;
      sums[u] += new_p;
    }
    place += piece.width;
  }
}

// Writes the means of the group's rows.
__device__ void PutMeans(const HeadUpdate& update, const HeadGroup& group, int lane,
                         const float (&sums)[kUnits]) {
  const HeadShape& s = update.shape;
  const HeadMeanWeightPointers& means = update.mean_weights;
#pragma unroll
  for (int u = 0; u < kUnits; ++u) {
    const float mean = WarpSum(sums[u]) / static_cast<float>(s.outputs);
    if (lane > 0 || u >= group.units) continue;
    const int unit = group.first_unit + u;
    means.member_weights[(group.member * s.actions + group.action) * s.hidden + unit] = mean;
    if (!s.separate_hidden) continue;
    means.ensemble_weights[group.action * s.hidden_total() + group.member * s.hidden + unit] =
        mean / static_cast<float>(s.members);
  }
}

// The warp that finishes the last member of a group averages over the members. REQUIRES: a fence
// after the means of the group's rows.
__device__ void PutMeansOfMembers(const HeadUpdate& update, const HeadGroup& group, int lane) {
  const HeadShape& s = update.shape;
  bool last = false;
  unsigned* done = update.mean_weights.members_done + group.index;
  if (lane == 0) {
    last = atomicAdd(done, 1U) + 1 == static_cast<unsigned>(s.members);
    if (last) __threadfence();  // before the means of other warps are read
  }
  if (__shfl_sync(kAllLanes, last ? 1 : 0, 0) == 0) return;
  if (lane < group.units) {
    PutMeanOfMembers(s, update.mean_weights, group.action, group.first_unit + lane);
  }
  if (lane == 0) *done = 0;
}

// Floats of one array of a stage.
__host__ __device__ int StageRoom(int tile, int outputs) {
  return (kUnits * (outputs < tile ? outputs : tile) + 3) / 4 * 4;
}

// Fences are expensive while so much is written. So each warp has only one, and the end of the
// update averages over the members of a speculative update.
template <bool kAdam, int kLane, bool kWhole>
__global__ void __launch_bounds__(kThreads)
    HeadOptimizerKernel(const __grid_constant__ HeadUpdate update) {
  constexpr int kTile = kLane * kWarpSize;
  extern __shared__ __align__(16) float memory[];
  __shared__ ArrivalBarrier barriers[kWarps];
  const HeadShape& s = update.shape;
  AwaitPredecessor();
  if (!IsDue(update.pass, *update.state)) return;
  const bool average_members = update.pass != OptimizerPass::kSpeculative && !s.separate_hidden;
  const UpdateScales scales = UpdateScalesOf(update.pass, *update.state);
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
  ArrivalBarrier& here = barriers[warp];
  if (lane == 0) {
    here.Initialize(1);
    FenceArrivals();
  }
  __syncwarp();
  const int room = StageRoom(kTile, s.outputs);
  const Stage stage{memory + 3 * room * warp, room};
  const int items = s.actions * s.members * HeadUpdateGroups(s);
  const int first_item = static_cast<int>(blockIdx.x) * kWarps + warp;
  const int step_to_next = static_cast<int>(gridDim.x) * kWarps;
  int fetches = 0;
  for (int item = first_item; item < items; item += step_to_next) {
    const HeadGroup group(s, item);
    // A gradient of zeros was not clipped: the speculative update was right.
    if (update.pass == OptimizerPass::kRedo && !HasGradient(update.gradient, group, lane)) continue;
    float sums[kUnits] = {};
    for (int first = 0; first < s.outputs; first += kTile) {
      const HeadPiece piece(s, group, first, kTile);
      Fetch(update, piece, stage, here, lane);
      float g[kUnits][kLane] = {};
      AddGradient<kLane, kWhole>(update, group, piece, lane, g);
      here.Wait(fetches++);
      UpdatePiece<kAdam, kLane, kWhole>(update, scales, piece, stage, lane, g, sums);
      Put(update, piece, stage, lane);
    }
    PutMeans(update, group, lane, sums);
  }
  if (average_members) {
    if (lane == 0) __threadfence();
    for (int item = first_item; item < items; item += step_to_next) {
      PutMeansOfMembers(update, HeadGroup(s, item), lane);
    }
  }
  if (lane == 0) AwaitStoresRead();  // before another block reuses the memory
}

struct HeadKernel {
  void (*kernel)(HeadUpdate);
  int tile;
};
template <int kLane, bool kWhole>
struct AdamKernels {
  static HeadKernel Get() { return {HeadOptimizerKernel<true, kLane, kWhole>, kLane * kWarpSize}; }
};
template <int kLane, bool kWhole>
struct RmsPropKernels {
  static HeadKernel Get() { return {HeadOptimizerKernel<false, kLane, kWhole>, kLane * kWarpSize}; }
};

bool IsAligned(const ParameterBlock& block) {
  const auto address = [](const float* pointer) {
    return reinterpret_cast<std::uintptr_t>(pointer);
  };
  return (address(block.p) | address(block.m) | address(block.v)) % 16 == 0;
}

int ItemsOf(const HeadShape& shape) {
  return shape.actions * shape.members * HeadUpdateGroups(shape);
}

// A speculative update shares the GPU. A redo runs alone, and other work waits for it.
int BlocksPerProcessor(OptimizerPass pass, const HeadShape& shape) {
  constexpr int kAsManyAsFit = 5;
  if (pass != OptimizerPass::kSpeculative) return kAsManyAsFit;
  return IsLongHeadUpdate(shape) ? 3 : 2;
}

}  // namespace

// Measured on an H200 with batches of 32 and the Atari network: false with 6 actions, true with 18.
bool IsLongHeadUpdate(const HeadShape& shape) {
  constexpr int kManyItems = 12'000;
  return ItemsOf(shape) > kManyItems;
}

void LaunchHeadOptimizer(const OptimizerRules& rules, OptimizerPass pass, const HeadShape& shape,
                         const HeadGradient& gradient, const ParameterUpdate& weights,
                         const UpdateState* state, const HeadMeanWeightPointers& mean_weights,
                         cudaStream_t stream, LaunchOrder order) {
  int multiprocessors = 0;  // results do not depend on it
  CheckCuda(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0),
            "cudaDeviceGetAttribute");
  const HeadKernel chosen =
      rules.adam ? KernelFor<AdamKernels>(shape.outputs) : KernelFor<RmsPropKernels>(shape.outputs);
  const int blocks_per_processor = BlocksPerProcessor(pass, shape);
  const int items = ItemsOf(shape);
  const std::size_t floats = 3 * kWarps * StageRoom(chosen.tile, shape.outputs);
  LaunchKernel(
      "optimizer of the head", chosen.kernel,
      {.grid = static_cast<unsigned>(
           std::min(blocks_per_processor * multiprocessors, (items + kWarps - 1) / kWarps)),
       .block = kThreads,
       .shared_bytes = sizeof(float) * floats,
       .stream = stream,
       .order = order},
      HeadUpdate{.rules = UpdateRules(rules),
                 .pass = pass,
                 .shape = shape,
                 .gradient = gradient,
                 .weights = weights,
                 .state = state,
                 .mean_weights = mean_weights,
                 .whole_groups = shape.hidden % kUnits == 0 && shape.outputs <= chosen.tile &&
                                 IsAligned(weights.from) && IsAligned(weights.to)});
}

}  // namespace uper::cuda
