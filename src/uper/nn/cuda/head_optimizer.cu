#include <algorithm>
#include <cstdint>

#include "uper/nn/cuda/bulk_copy.cuh"
#include "uper/nn/cuda/head_parts.cuh"
#include "uper/nn/cuda/launch.cuh"
#include "uper/nn/cuda/optimizer_kernels.h"
#include "uper/nn/cuda/optimizer_step.cuh"
#include "uper/nn/cuda/reductions.cuh"

// The step on the head's weights: memory is all it waits for. Two small blocks a multiprocessor
// leave room for kernels that compute; their warps work for themselves, and while one steps some
// weights the copy engine brings the next.

namespace uper {
namespace {

constexpr int kWarps = 4;
constexpr int kThreads = kWarps * kWarpSize;
constexpr int kBlocksPerProcessor = 2;
constexpr int kStages = 2;  // fetches of a warp on their way or at work
// Hidden units of one fetch. The weights of four are whole groups of 16 bytes if those of an action
// are, so that the copy engine can move them.
constexpr int kFetch = 4;
static_assert(kHeadStepUnits % kFetch == 0);

struct HeadStep {
  StepRules rules;
  StepKind kind = StepKind::kPlain;
  HeadShape shape;
  HeadGradient gradient;
  ParameterStep weights;
  const StepState* state = nullptr;
  HeadTablePointers tables;
  bool whole_groups = false;  // of 16 bytes, in every fetch
};

// Hidden units of one (action, member) that one warp steps.
struct HeadChunk {
  int action, member, first_unit, units;
  int index;  // the same for all members

  __device__ HeadChunk(const HeadShape& s, int item) {
    const int chunks = HeadStepChunks(s) / s.actions;
    const int block = item / chunks;
    const int chunk = item - block * chunks;
    action = block / s.members;
    member = block - action * s.members;
    first_unit = chunk * kHeadStepUnits;
    units = min(kHeadStepUnits, s.hidden - first_unit);
    index = action * chunks + chunk;
  }
};

// One fetch: some units of a chunk, and a tile of their outputs.
struct HeadPiece {
  int unit, units;
  int first_output, width;
  std::ptrdiff_t at;  // its first weight
};

// Whether a lane has its i-th output. kWhole: pieces are whole rows, and only the last can be
// missing.
template <int kLane, bool kWhole>
__device__ bool IsThere(const HeadPiece& piece, int lane, int i) {
  return (kWhole && i + 1 < kLane) || lane + i * kWarpSize < piece.width;
}

// The fetches of a warp, in order: of every step-th chunk, its units and their tiles.
template <int kLane>
struct PieceWalk {
  static constexpr int kTile = kLane * kWarpSize;

  int item, step;
  int unit = 0;  // in the chunk
  int first_output = 0;

  __device__ HeadPiece Piece(const HeadShape& s, const HeadChunk& chunk) const {
    const int first = chunk.first_unit + unit;
    return {.unit = first,
            .units = min(kFetch, chunk.units - unit),
            .first_output = first_output,
            .width = min(kTile, s.outputs - first_output),
            .at = BlockAt(s, chunk.action, chunk.member) +
                  static_cast<std::ptrdiff_t>(first) * s.outputs + first_output};
  }
  __device__ bool IsLastTile(const HeadShape& s) const { return first_output + kTile >= s.outputs; }
  __device__ bool IsLastOfChunk(const HeadShape& s, const HeadChunk& chunk) const {
    return IsLastTile(s) && unit + kFetch >= chunk.units;
  }
  __device__ void Next(const HeadShape& s, const HeadChunk& chunk) {
    if (!IsLastTile(s)) {
      first_output += kTile;
      return;
    }
    first_output = 0;
    unit += kFetch;
    if (unit < chunk.units) return;
    unit = 0;
    item += step;
  }
};

// Weights and moments of one fetch in shared memory: p, m and v, each [unit][output].
struct Stage {
  float* floats;
  int room;  // of one of the three

  __device__ float* p() const { return floats; }
  __device__ float* m() const { return floats + room; }
  __device__ float* v() const { return floats + 2 * room; }
};

__device__ void CopyRows(const float* from, const HeadPiece& piece, int outputs, int lane,
                         float* to) {
#pragma unroll 1
  for (int u = 0; u < piece.units; ++u) {
#pragma unroll 1
    for (int i = lane; i < piece.width; i += kWarpSize) {
      to[u * piece.width + i] = from[u * outputs + i];
    }
  }
}

// Starts a fetch into a stage that all lanes have read.
__device__ void Fetch(const HeadStep& step, const HeadPiece& piece, const Stage& to,
                      ArrivalBarrier& here, int lane) {
  const ParameterBlock& from = step.weights.from;
  if (step.whole_groups) {
    if (lane > 0) return;
    const unsigned bytes = static_cast<unsigned>(piece.units * piece.width * sizeof(float));
    here.Expect(3 * bytes);
    // The moments are not read again before the next update.
    const std::uint64_t keep = CachePolicy(Keep::kAsLongAsOthers);
    const std::uint64_t pass = CachePolicy(Keep::kShortly);
    StartLoad(to.p(), from.p + piece.at, bytes, keep, here);
    StartLoad(to.m(), from.m + piece.at, bytes, pass, here);
    StartLoad(to.v(), from.v + piece.at, bytes, pass, here);
    return;
  }
  CopyRows(from.p + piece.at, piece, step.shape.outputs, lane, to.p());
  CopyRows(from.m + piece.at, piece, step.shape.outputs, lane, to.m());
  CopyRows(from.v + piece.at, piece, step.shape.outputs, lane, to.v());
  __syncwarp();
  if (lane == 0) here.Arrive();
}

// g [unit][output of the lane]: the piece's gradient, samples in ascending order.
template <int kLane, bool kWhole>
__device__ void AddGradient(const HeadStep& step, const HeadChunk& chunk, const HeadPiece& piece,
                            int lane, float (&g)[kFetch][kLane]) {
  const HeadShape& s = step.shape;
  const HeadGradient& gradient = step.gradient;
  const float* units = gradient.hidden + MemberUnits(s, chunk.member) + piece.unit;
  const float* d_out = gradient.d_out + chunk.member * s.outputs + piece.first_output + lane;
  for (int group = 0; group < gradient.batch; group += kWarpSize) {
    const int mine = group + lane;
    const bool learns = mine < gradient.batch && __ldg(gradient.actions + mine) == chunk.action &&
                        Learns(gradient.masks, mine, chunk.member);
    for (unsigned left = __ballot_sync(kAllLanes, learns); left != 0; left &= left - 1) {
      const int b = group + __ffs(static_cast<int>(left)) - 1;
      float unit[kFetch];
#pragma unroll
      for (int u = 0; u < kFetch; ++u) {
        unit[u] = u < piece.units ? __ldg(units + b * s.hidden_total() + u) : 0.0F;
      }
      const float* d = d_out + b * (s.members * s.outputs);
      float values[kLane];
#pragma unroll
      for (int i = 0; i < kLane; ++i) {
        values[i] = IsThere<kLane, kWhole>(piece, lane, i) ? __ldg(d + i * kWarpSize) : 0.0F;
      }
#pragma unroll
      for (int i = 0; i < kLane; ++i) {
        const float value = values[i];
#pragma unroll
        for (int u = 0; u < kFetch; ++u) g[u][i] = fmaf(unit[u], value, g[u][i]);
      }
    }
  }
}

// Adds the lane's new weights of each unit to `sums`.
template <bool kAdam, int kLane, bool kWhole>
__device__ void StepPiece(const HeadStep& step, const StepScales& scales, const HeadPiece& piece,
                          const Stage& from, int lane, const float (&g)[kFetch][kLane],
                          float (&sums)[kFetch]) {
  const std::ptrdiff_t first = piece.at + lane;
  float* p_to = step.weights.to.p + first;
  float* m_to = step.weights.to.m + first;
  float* v_to = step.weights.to.v + first;
  int place = lane;
#pragma unroll
  for (int u = 0; u < kFetch; ++u) {
    if (u == piece.units) break;
#pragma unroll
    for (int i = 0; i < kLane; ++i) {
      float p = from.p()[place + i * kWarpSize];
      float m = from.m()[place + i * kWarpSize];
      float v = from.v()[place + i * kWarpSize];
      Step<kAdam>(step.rules, scales, g[u][i] * scales.gradient_scale, p, m, v);
      if (IsThere<kLane, kWhole>(piece, lane, i)) {
        p_to[i * kWarpSize] = p;
        __stcs(m_to + i * kWarpSize, m);
        __stcs(v_to + i * kWarpSize, v);
        sums[u] += p;
      }
    }
    place += piece.width;
    p_to += step.shape.outputs;
    m_to += step.shape.outputs;
    v_to += step.shape.outputs;
  }
}

// The averages of the piece's rows.
__device__ void PutMeans(const HeadStep& step, const HeadChunk& chunk, const HeadPiece& piece,
                         int lane, float (&sums)[kFetch]) {
  const HeadShape& s = step.shape;
#pragma unroll
  for (int u = 0; u < kFetch; ++u) {
    const float mean = WarpSum(sums[u]) / static_cast<float>(s.outputs);
    sums[u] = 0;
    if (lane > 0 || u >= piece.units) continue;
    const int unit = piece.unit + u;
    step.tables.member_weights[(chunk.member * s.actions + chunk.action) * s.hidden + unit] = mean;
    if (!s.separate_hidden) continue;
    step.tables.mean_weights[chunk.action * s.hidden_total() + chunk.member * s.hidden + unit] =
        mean / static_cast<float>(s.members);
  }
}

// Whoever has the last member of a chunk averages over the members, in order.
__device__ void PutMeansOfMembers(const HeadStep& step, const HeadChunk& chunk, int lane) {
  const HeadShape& s = step.shape;
  if (s.separate_hidden) return;
  unsigned before = 0;
  unsigned* done = step.tables.members_done + chunk.index;
  if (lane == 0) {
    __threadfence();  // first the averages
    before = atomicAdd(done, 1U);
    __threadfence();
  }
  before = __shfl_sync(kAllLanes, before, 0);
  if (before + 1 < static_cast<unsigned>(s.members)) return;
  for (int i = lane; i < chunk.units; i += kWarpSize) {
    const int unit = chunk.first_unit + i;
    float sum = 0;
#pragma unroll 4
    for (int k = 0; k < s.members; ++k) {
      sum += __ldcg(step.tables.member_weights + (k * s.actions + chunk.action) * s.hidden + unit);
    }
    step.tables.mean_weights[chunk.action * s.hidden + unit] = sum / static_cast<float>(s.members);
  }
  if (lane == 0) *done = 0;
}

// Floats of one array of a stage.
__host__ __device__ int StageRoom(int tile, int outputs) {
  return (kFetch * (outputs < tile ? outputs : tile) + 3) / 4 * 4;
}

template <bool kAdam, int kLane, bool kWhole>
__global__ void __launch_bounds__(kThreads)
    HeadOptimizerKernel(const __grid_constant__ HeadStep step) {
  extern __shared__ __align__(16) float memory[];
  __shared__ ArrivalBarrier barriers[kWarps][kStages];
  if (!IsDue(step.kind, *step.state)) return;
  const StepScales scales = StepScalesOf(step.kind, *step.state);
  const HeadShape& s = step.shape;
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
  const int items = s.actions * s.members * (HeadStepChunks(s) / s.actions);
  ArrivalBarrier* here = barriers[warp];
  if (lane == 0) {
    for (int i = 0; i < kStages; ++i) here[i].Initialize(1);
    FenceArrivals();
  }
  __syncwarp();
  const int room = StageRoom(kLane * kWarpSize, s.outputs);
  const auto stage = [&](int fetch) {
    return Stage{memory + 3 * room * (warp * kStages + fetch % kStages), room};
  };
  PieceWalk<kLane> at{.item = static_cast<int>(blockIdx.x) * kWarps + warp,
                      .step = static_cast<int>(gridDim.x) * kWarps};
  PieceWalk<kLane> ahead = at;
  const auto fetch_ahead = [&](int fetch) {
    if (ahead.item >= items) return;
    const HeadChunk chunk(s, ahead.item);
    Fetch(step, ahead.Piece(s, chunk), stage(fetch), here[fetch % kStages], lane);
    ahead.Next(s, chunk);
  };
  for (int i = 0; i < kStages; ++i) fetch_ahead(i);
  float sums[kFetch] = {};
  for (int fetch = 0; at.item < items; ++fetch) {
    const HeadChunk chunk(s, at.item);
    const HeadPiece piece = at.Piece(s, chunk);
    float g[kFetch][kLane] = {};
    AddGradient<kLane, kWhole>(step, chunk, piece, lane, g);
    here[fetch % kStages].Wait(fetch / kStages);
    StepPiece<kAdam, kLane, kWhole>(step, scales, piece, stage(fetch), lane, g, sums);
    __syncwarp();  // the stage has been read
    fetch_ahead(fetch + kStages);
    if (at.IsLastTile(s)) PutMeans(step, chunk, piece, lane, sums);
    if (at.IsLastOfChunk(s, chunk)) PutMeansOfMembers(step, chunk, lane);
    at.Next(s, chunk);
  }
}

struct HeadKernel {
  void (*kernel)(HeadStep);
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

}  // namespace

void LaunchHeadOptimizer(const OptimizerRules& rules, StepKind kind, const HeadShape& shape,
                         const HeadGradient& gradient, const ParameterStep& weights,
                         const StepState* state, const HeadTablePointers& tables,
                         cudaStream_t stream) {
  int multiprocessors = 0;  // results do not depend on it
  CheckCuda(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0),
            "cudaDeviceGetAttribute");
  const HeadKernel chosen =
      rules.adam ? KernelFor<AdamKernels>(shape.outputs) : KernelFor<RmsPropKernels>(shape.outputs);
  const int items = shape.actions * shape.members * (HeadStepChunks(shape) / shape.actions);
  const std::size_t floats =
      3 * kStages * kWarps * StageRoom(chosen.tile, shape.outputs) + chosen.tile;
  LaunchKernel("optimiser of the head", chosen.kernel,
               {.grid = static_cast<unsigned>(
                    std::min(kBlocksPerProcessor * multiprocessors, (items + kWarps - 1) / kWarps)),
                .block = kThreads,
                .shared_bytes = sizeof(float) * floats,
                .stream = stream},
               HeadStep{.rules = StepRules(rules),
                        .kind = kind,
                        .shape = shape,
                        .gradient = gradient,
                        .weights = weights,
                        .state = state,
                        .tables = tables,
                        .whole_groups = shape.hidden % kFetch == 0 &&
                                        shape.outputs <= chosen.tile && IsAligned(weights.from)});
}

}  // namespace uper
