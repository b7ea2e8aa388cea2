#include <algorithm>

#include "uper/nn/cuda/bulk_copy.cuh"
#include "uper/nn/cuda/launch.cuh"
#include "uper/nn/cuda/optimizer_kernels.h"
#include "uper/nn/cuda/optimizer_step.cuh"
#include "uper/nn/cuda/reductions.cuh"

namespace uper {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / kWarpSize;
constexpr int kLaneOutputs = 7;                       // 201 are one piece of a row
constexpr int kPiece = kLaneOutputs * kWarpSize;      // outputs of a warp at a time
constexpr int kStages = 4;                            // tiles on their way or at work
constexpr std::size_t kMostSharedBytes = 200 * 1024;  // of a block

struct HeadStep {
  OptimizerRules rules;
  StepKind kind = StepKind::kPlain;
  HeadShape shape;
  HeadGradient gradient;
  ParameterStep weights;
  const StepState* state = nullptr;
  HeadTablePointers tables;
};

// actions and masks of the batch, in shared memory.
struct BatchParts {
  const int* actions;
  const std::uint64_t* masks;
};

__device__ BatchParts LoadBatch(const HeadGradient& gradient, void* memory) {
  auto* masks = static_cast<std::uint64_t*>(memory);
  auto* actions = reinterpret_cast<int*>(masks + gradient.batch);
  for (int b = static_cast<int>(threadIdx.x); b < gradient.batch; b += kThreads) {
    masks[b] = gradient.masks[b];
    actions[b] = gradient.actions[b];
  }
  __syncthreads();
  return {actions, masks};
}
std::size_t BatchBytes(int batch) { return (sizeof(std::uint64_t) + sizeof(int)) * batch; }

// A row of weights: all outputs of (action, member, hidden unit).
struct HeadRow {
  int action, member, unit;
};

// The row's gradient at outputs first, first + 32, ...: samples in ascending order, the whole warp
// at once.
__device__ void RowGradient(const HeadStep& step, const BatchParts& batch, const HeadRow& row,
                            int first, float (&g)[kLaneOutputs]) {
  const HeadShape& s = step.shape;
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  for (int group = 0; group < step.gradient.batch; group += kWarpSize) {
    const int mine = group + lane;
    const bool learns = mine < step.gradient.batch && batch.actions[mine] == row.action &&
                        (batch.masks[mine] >> row.member & 1) != 0;
    for (unsigned left = __ballot_sync(kAllLanes, learns); left != 0; left &= left - 1) {
      const std::ptrdiff_t b = group + __ffs(static_cast<int>(left)) - 1;
      const float value = __ldg(step.gradient.hidden + b * s.hidden_total() +
                                (s.separate_hidden ? row.member * s.hidden : 0) + row.unit);
      const float* d_out = step.gradient.d_out + (b * s.members + row.member) * s.outputs;
#pragma unroll
      for (int i = 0; i < kLaneOutputs; ++i) {
        const int at = first + i * kWarpSize;
        if (at < s.outputs) g[i] = fmaf(value, __ldg(d_out + at), g[i]);
      }
    }
  }
}

// Steps a row, one warp. p, m and v are read at `from` and written at `to`, from output 0 on.
// Returns the mean of the new weights, to all lanes.
template <bool kAdam>
__device__ float StepRow(const StepConstants& c, const HeadStep& step, const BatchParts& batch,
                         const HeadRow& row, const ParameterBlock& from, const ParameterBlock& to) {
  const int outputs = step.shape.outputs;
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  float sum = 0;
  for (int first = lane; first - lane < outputs; first += kPiece) {
    float g[kLaneOutputs] = {};
    RowGradient(step, batch, row, first, g);
#pragma unroll
    for (int i = 0; i < kLaneOutputs; ++i) {
      const int at = first + i * kWarpSize;
      if (at >= outputs) continue;
      float p = from.p[at];
      float m = from.m[at];
      float v = from.v[at];
      Step<kAdam>(c, g[i] * c.gradient_scale, p, m, v);
      to.p[at] = p;
      to.m[at] = m;
      to.v[at] = v;
      sum += p;
    }
  }
  return WarpSum(sum) / static_cast<float>(outputs);
}

__device__ std::ptrdiff_t RowAt(const HeadShape& s, const HeadRow& row) {
  return ((static_cast<std::ptrdiff_t>(row.action) * s.members + row.member) * s.hidden +
          row.unit) *
         s.outputs;
}

__device__ ParameterBlock Shifted(const ParameterBlock& block, std::ptrdiff_t offset) {
  return {block.p + offset, block.m + offset, block.v + offset};
}

// The average of one row, by one lane.
__device__ void PutMean(const HeadStep& step, const HeadRow& row, float mean) {
  const HeadShape& s = step.shape;
  const std::ptrdiff_t at =
      (static_cast<std::ptrdiff_t>(row.member) * s.actions + row.action) * s.hidden + row.unit;
  step.tables.member_weights[at] = mean;
  if (!s.separate_hidden) return;
  step.tables.mean_weights[static_cast<std::ptrdiff_t>(row.action) * s.hidden_total() +
                           row.member * s.hidden + row.unit] = mean / static_cast<float>(s.members);
}

// Heads of any shape: a warp takes the rows of one (action, hidden unit) after the other.
template <bool kAdam>
__global__ void __launch_bounds__(kThreads) AnyHeadKernel(const __grid_constant__ HeadStep step) {
  extern __shared__ __align__(128) unsigned char memory[];
  if (!IsDue(step.kind, *step.state)) return;
  const BatchParts batch = LoadBatch(step.gradient, memory);
  const StepConstants c = StepConstantsOf(step.rules, step.kind, *step.state);
  const HeadShape& s = step.shape;
  const bool first_lane = threadIdx.x % kWarpSize == 0;
  for (int pair = static_cast<int>((blockIdx.x * kThreads + threadIdx.x) / kWarpSize);
       pair < s.actions * s.hidden; pair += static_cast<int>(gridDim.x) * kWarps) {
    float means = 0;
    for (int k = 0; k < s.members; ++k) {
      const HeadRow row{pair / s.hidden, k, pair % s.hidden};
      const std::ptrdiff_t at = RowAt(s, row);
      const float mean = StepRow<kAdam>(c, step, batch, row, Shifted(step.weights.from, at),
                                        Shifted(step.weights.to, at));
      means += mean;
      if (first_lane) PutMean(step, row, mean);
    }
    if (first_lane && !s.separate_hidden) {
      step.tables.mean_weights[pair] = means / static_cast<float>(s.members);
    }
  }
}

// Heads whose tiles the copy engine can move. A tile is kWarps hidden units of one (action,
// member), a warp a row; a group is the tiles of all members. A block takes some groups; while it
// works on one tile the next ones are on their way.

__host__ __device__ int GroupsOf(const HeadShape& s) { return s.actions * (s.hidden / kWarps); }

struct TiledMemory {
  int tile_floats;  // of p, m or v

  __host__ __device__ explicit TiledMemory(const HeadShape& s) : tile_floats(kWarps * s.outputs) {}
  __host__ __device__ std::size_t stage_bytes() const { return sizeof(float) * 3 * tile_floats; }
  __host__ __device__ std::size_t means_bytes(const HeadShape& s) const {
    return sizeof(float) * 2 * s.members * kWarps;
  }
  std::size_t bytes(const HeadShape& s, int batch) const {
    return kStages * stage_bytes() + means_bytes(s) + BatchBytes(batch);
  }
};

bool SuitsTiles(const HeadShape& s, const ParameterStep& weights, int batch) {
  const auto aligned = [](const ParameterBlock& block) {
    return (reinterpret_cast<std::uintptr_t>(block.p) | reinterpret_cast<std::uintptr_t>(block.m) |
            reinterpret_cast<std::uintptr_t>(block.v)) %
               16 ==
           0;
  };
  return s.hidden % kWarps == 0 && aligned(weights.from) && aligned(weights.to) &&
         TiledMemory(s).bytes(s, batch) <= kMostSharedBytes;
}

template <bool kAdam>
__global__ void __launch_bounds__(kThreads, 2)
    TiledHeadKernel(const __grid_constant__ HeadStep step) {
  extern __shared__ __align__(128) unsigned char memory[];
  __shared__ ArrivalBarrier arrivals[kStages];
  if (!IsDue(step.kind, *step.state)) return;
  const HeadShape& s = step.shape;
  const TiledMemory layout(s);
  auto* means = reinterpret_cast<float*>(memory + kStages * layout.stage_bytes());
  if (threadIdx.x == 0) {
    for (ArrivalBarrier& barrier : arrivals) barrier.Initialize();
    FenceArrivals();
  }
  // [2][member][kWarps] means, then the batch.
  const BatchParts batch =
      LoadBatch(step.gradient, memory + kStages * layout.stage_bytes() + layout.means_bytes(s));
  const StepConstants c = StepConstantsOf(step.rules, step.kind, *step.state);
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
  const int groups = GroupsOf(s);
  const auto first_group = [&](unsigned block) {
    return static_cast<int>(static_cast<long long>(groups) * block / gridDim.x);
  };
  const int begin = first_group(blockIdx.x);
  const int tiles = (first_group(blockIdx.x + 1) - begin) * s.members;
  const auto row_of = [&](int tile, int row) {
    const int group = begin + tile / s.members;
    const int unit_tiles = s.hidden / kWarps;
    return HeadRow{group / unit_tiles, tile % s.members, group % unit_tiles * kWarps + row};
  };
  const auto stage_of = [&](int tile) {
    auto* p = reinterpret_cast<float*>(memory + tile % kStages * layout.stage_bytes());
    return ParameterBlock{p, p + layout.tile_floats, p + 2 * layout.tile_floats};
  };
  const unsigned bytes = sizeof(float) * layout.tile_floats;
  const auto load = [&](int tile) {
    const ParameterBlock from = Shifted(step.weights.from, RowAt(s, row_of(tile, 0)));
    const ParameterBlock to = stage_of(tile);
    ArrivalBarrier& barrier = arrivals[tile % kStages];
    barrier.Expect(3 * bytes);
    StartLoad(to.p, from.p, bytes, barrier);
    StartLoad(to.m, from.m, bytes, barrier);
    StartLoad(to.v, from.v, bytes, barrier);
  };
  if (threadIdx.x == 0) {
    for (int tile = 0; tile < min(kStages - 1, tiles); ++tile) load(tile);
  }
  for (int tile = 0; tile < tiles; ++tile) {
    const ParameterBlock stage = stage_of(tile);
    const ParameterBlock own = Shifted(stage, warp * s.outputs);
    const HeadRow row = row_of(tile, warp);
    float* group_means = means + tile / s.members % 2 * s.members * kWarps;
    arrivals[tile % kStages].Wait(tile / kStages);
    const float mean = StepRow<kAdam>(c, step, batch, row, own, own);
    if (lane == 0) {
      PutMean(step, row, mean);
      group_means[row.member * kWarps + warp] = mean;
    }
    FenceStores();
    __syncthreads();
    if (threadIdx.x == 0) {
      const ParameterBlock to = Shifted(step.weights.to, RowAt(s, row_of(tile, 0)));
      StartStore(to.p, stage.p, bytes);
      StartStore(to.m, stage.m, bytes);
      StartStore(to.v, stage.v, bytes);
      EndStoreGroup();
      AwaitStores<1>();  // the tile before has left the stage that is filled next
      if (tile + kStages - 1 < tiles) load(tile + kStages - 1);
    }
    if (row.member + 1 < s.members || s.separate_hidden || threadIdx.x >= kWarps) continue;
    const HeadRow mine = row_of(tile, static_cast<int>(threadIdx.x));
    float sum = 0;
    for (int k = 0; k < s.members; ++k) sum += group_means[k * kWarps + threadIdx.x];
    step.tables.mean_weights[static_cast<std::ptrdiff_t>(mine.action) * s.hidden + mine.unit] =
        sum / static_cast<float>(s.members);
  }
  if (threadIdx.x == 0) AwaitStores<0>();
}

}  // namespace

void LaunchHeadOptimizer(const OptimizerRules& rules, StepKind kind, const HeadShape& shape,
                         const HeadGradient& gradient, const ParameterStep& weights,
                         const StepState* state, const HeadTablePointers& tables,
                         cudaStream_t stream) {
  int multiprocessors = 0;  // results do not depend on it
  CheckCuda(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0),
            "cudaDeviceGetAttribute");
  const HeadStep step{rules, kind, shape, gradient, weights, state, tables};
  LaunchShape launch{
      .grid = 1, .block = kThreads, .shared_bytes = BatchBytes(gradient.batch), .stream = stream};
  if (SuitsTiles(shape, weights, gradient.batch)) {
    launch.grid = static_cast<unsigned>(std::min(multiprocessors, GroupsOf(shape)));
    launch.shared_bytes = TiledMemory(shape).bytes(shape, gradient.batch);
    LaunchKernel("optimiser of the head",
                 rules.adam ? TiledHeadKernel<true> : TiledHeadKernel<false>, launch, step);
  } else {
    const int pairs = shape.actions * shape.hidden;
    launch.grid =
        static_cast<unsigned>(std::min(2 * multiprocessors, (pairs + kWarps - 1) / kWarps));
    LaunchKernel("optimiser of the head", rules.adam ? AnyHeadKernel<true> : AnyHeadKernel<false>,
                 launch, step);
  }
}

}  // namespace uper
