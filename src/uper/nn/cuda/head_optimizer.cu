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
  for (int b = static_cast<int>(threadIdx.x); b < gradient.batch;
       b += static_cast<int>(blockDim.x)) {
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
// at once. Two samples are fetched at a time.
__device__ void RowGradient(const HeadStep& step, const BatchParts& batch, const HeadRow& row,
                            int first, float (&g)[kLaneOutputs]) {
  const HeadShape& s = step.shape;
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const float* units =
      step.gradient.hidden + (s.separate_hidden ? row.member * s.hidden : 0) + row.unit;
  const float* d_out = step.gradient.d_out + row.member * s.outputs + first;
  const int d_stride = s.members * s.outputs;
  for (int group = 0; group < step.gradient.batch; group += kWarpSize) {
    const int mine = group + lane;
    const bool learns = mine < step.gradient.batch && batch.actions[mine] == row.action &&
                        (batch.masks[mine] >> row.member & 1) != 0;
    unsigned left = __ballot_sync(kAllLanes, learns);
    while (left != 0) {
      float value[2], d[2][kLaneOutputs];
#pragma unroll
      for (int n = 0; n < 2; ++n) {
        const bool there = left != 0;
        const int b = there ? group + __ffs(static_cast<int>(left)) - 1 : 0;
        left &= left - 1;
        value[n] = there ? __ldg(units + b * s.hidden_total()) : 0.0F;
#pragma unroll
        for (int i = 0; i < kLaneOutputs; ++i) {
          d[n][i] = there && first + i * kWarpSize < s.outputs
                        ? __ldg(d_out + b * d_stride + i * kWarpSize)
                        : 0.0F;
        }
      }
#pragma unroll
      for (int n = 0; n < 2; ++n) {
#pragma unroll
        for (int i = 0; i < kLaneOutputs; ++i) g[i] = fmaf(value[n], d[n][i], g[i]);
      }
    }
  }
}

// Steps a row, one warp. p, m and v are read at `from`, after await(), and written at `to`, from
// output 0 on. Returns the mean of the new weights, to all lanes.
template <bool kAdam, typename Await>
__device__ float StepRow(const StepConstants& c, const HeadStep& step, const BatchParts& batch,
                         const HeadRow& row, const ParameterBlock& from, const ParameterBlock& to,
                         const Await& await) {
  const int outputs = step.shape.outputs;
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  float sum = 0;
  for (int first = lane; first - lane < outputs; first += kPiece) {
    float g[kLaneOutputs] = {};
    RowGradient(step, batch, row, first, g);
    if (first == lane) await();
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
                                        Shifted(step.weights.to, at), [] {});
      means += mean;
      if (first_lane) PutMean(step, row, mean);
    }
    if (first_lane && !s.separate_hidden) {
      step.tables.mean_weights[pair] = means / static_cast<float>(s.members);
    }
  }
}

// Heads whose tiles the copy engine can move. A tile is kWarps hidden units of one (action,
// member), a warp a row; a group is the tiles of all members, and a block takes some groups. One
// more warp keeps the copies going: while the others work on one tile the next ones are on their
// way, and those before are on their way back.
constexpr int kTiledThreads = kThreads + kWarpSize;

__host__ __device__ int GroupsOf(const HeadShape& s) { return s.actions * (s.hidden / kWarps); }

struct TiledMemory {
  int tile_floats;  // of p, m or v

  __host__ __device__ explicit TiledMemory(const HeadShape& s) : tile_floats(kWarps * s.outputs) {}
  __host__ __device__ std::size_t stage_bytes() const { return sizeof(float) * 3 * tile_floats; }
  std::size_t bytes(int batch) const { return kStages * stage_bytes() + BatchBytes(batch); }
  __device__ ParameterBlock Stage(unsigned char* memory, int tile) const {
    auto* p = reinterpret_cast<float*>(memory + tile % kStages * stage_bytes());
    return {p, p + tile_floats, p + 2 * tile_floats};
  }
};

bool SuitsTiles(const HeadShape& s, const ParameterStep& weights, int batch) {
  const auto places = [](const ParameterBlock& block) {
    return reinterpret_cast<std::uintptr_t>(block.p) | reinterpret_cast<std::uintptr_t>(block.m) |
           reinterpret_cast<std::uintptr_t>(block.v);
  };
  return s.hidden % kWarps == 0 && (places(weights.from) | places(weights.to)) % 16 == 0 &&
         TiledMemory(s).bytes(batch) <= kMostSharedBytes;
}

// The tiles of a block, one after the other.
class TileWalk {
 public:
  __device__ TileWalk(const HeadShape& s, int first_group) : s_(s) {
    const int unit_tiles = s.hidden / kWarps;
    row_ = {first_group / unit_tiles, 0, first_group % unit_tiles * kWarps};
  }
  __device__ const HeadRow& first_row() const { return row_; }
  __device__ std::ptrdiff_t offset() const { return RowAt(s_, row_); }
  __device__ void Next() {
    if (++row_.member < s_.members) return;
    row_.member = 0;
    row_.unit += kWarps;
    if (row_.unit < s_.hidden) return;
    row_.unit = 0;
    ++row_.action;
  }

 private:
  const HeadShape& s_;
  HeadRow row_;
};

struct TileBarriers {
  ArrivalBarrier loaded[kStages];
  ArrivalBarrier stepped[kStages];
};

// One thread: brings tiles and takes them back.
__device__ void MoveTiles(const HeadStep& step, int first_group, int tiles, unsigned char* memory,
                          TileBarriers& barriers) {
  const TiledMemory layout(step.shape);
  const unsigned bytes = sizeof(float) * layout.tile_floats;
  TileWalk ahead(step.shape, first_group);
  TileWalk back(step.shape, first_group);
  const auto load = [&](int tile) {
    const ParameterBlock from = Shifted(step.weights.from, ahead.offset());
    const ParameterBlock to = layout.Stage(memory, tile);
    ArrivalBarrier& loaded = barriers.loaded[tile % kStages];
    loaded.Expect(3 * bytes);
    StartLoad(to.p, from.p, bytes, loaded);
    StartLoad(to.m, from.m, bytes, loaded);
    StartLoad(to.v, from.v, bytes, loaded);
    ahead.Next();
  };
  for (int tile = 0; tile < min(kStages, tiles); ++tile) load(tile);
  for (int tile = 0; tile < tiles; ++tile) {
    const ParameterBlock to = Shifted(step.weights.to, back.offset());
    const ParameterBlock from = layout.Stage(memory, tile);
    barriers.stepped[tile % kStages].Wait(tile / kStages);
    StartStore(to.p, from.p, bytes);
    StartStore(to.m, from.m, bytes);
    StartStore(to.v, from.v, bytes);
    EndStoreGroup();
    back.Next();
    AwaitStores<1>();  // the tile before has left its stage
    if (tile > 0 && tile - 1 + kStages < tiles) load(tile - 1 + kStages);
  }
  AwaitStores<0>();
}

// One warp: its row of every tile.
template <bool kAdam>
__device__ void StepTiles(const HeadStep& step, const BatchParts& batch, int first_group, int tiles,
                          unsigned char* memory, TileBarriers& barriers) {
  const HeadShape& s = step.shape;
  const TiledMemory layout(s);
  const StepConstants c = StepConstantsOf(step.rules, step.kind, *step.state);
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
  TileWalk walk(s, first_group);
  float means = 0;  // of the members
  for (int tile = 0; tile < tiles; ++tile) {
    HeadRow row = walk.first_row();
    row.unit += warp;
    const ParameterBlock own = Shifted(layout.Stage(memory, tile), warp * s.outputs);
    const float mean = StepRow<kAdam>(c, step, batch, row, own, own, [&] {
      barriers.loaded[tile % kStages].Wait(tile / kStages);
    });
    FenceStores();
    __syncwarp();
    means += mean;
    if (lane == 0) {
      barriers.stepped[tile % kStages].Arrive();
      PutMean(step, row, mean);
      if (row.member + 1 == s.members && !s.separate_hidden) {
        step.tables.mean_weights[static_cast<std::ptrdiff_t>(row.action) * s.hidden + row.unit] =
            means / static_cast<float>(s.members);
      }
    }
    if (row.member + 1 == s.members) means = 0;
    walk.Next();
  }
}

template <bool kAdam>
__global__ void __launch_bounds__(kTiledThreads)
    TiledHeadKernel(const __grid_constant__ HeadStep step) {
  extern __shared__ __align__(128) unsigned char memory[];
  __shared__ TileBarriers barriers;
  if (!IsDue(step.kind, *step.state)) return;
  if (threadIdx.x == 0) {
    for (int i = 0; i < kStages; ++i) {
      barriers.loaded[i].Initialize(1);
      barriers.stepped[i].Initialize(kWarps);
    }
    FenceArrivals();
  }
  const BatchParts batch =
      LoadBatch(step.gradient, memory + kStages * TiledMemory(step.shape).stage_bytes());
  const long long groups = GroupsOf(step.shape);
  const int begin = static_cast<int>(groups * blockIdx.x / gridDim.x);
  const int end = static_cast<int>(groups * (blockIdx.x + 1) / gridDim.x);
  const int tiles = (end - begin) * step.shape.members;
  if (threadIdx.x < kThreads) {
    StepTiles<kAdam>(step, batch, begin, tiles, memory, barriers);
  } else if (threadIdx.x == kThreads) {
    MoveTiles(step, begin, tiles, memory, barriers);
  }
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
    launch.block = kTiledThreads;
    launch.shared_bytes = TiledMemory(shape).bytes(gradient.batch);
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
