#include <cuda_pipeline_primitives.h>

#include <algorithm>

#include "uper/nn/cuda/head_parts.cuh"
#include "uper/nn/cuda/launch.cuh"
#include "uper/nn/cuda/optimizer_kernels.h"
#include "uper/nn/cuda/optimizer_step.cuh"
#include "uper/nn/cuda/reductions.cuh"

namespace uper {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / kWarpSize;
constexpr int kBlocksPerProcessor = 4;

struct HeadStep {
  StepRules rules;
  StepKind kind = StepKind::kPlain;
  HeadShape shape;
  HeadGradient gradient;
  ParameterStep weights;
  const StepState* state = nullptr;
  HeadTablePointers tables;
};

// A piece of a row of weights, of (action, member, hidden unit), in the eyes of one lane: every
// 32nd output, at most kGroups of them. Rows of all members are walked through.
template <int kGroups, bool kOnePiece>
struct LanePiece {
  int action, unit;
  int member = 0;
  int first;          // output of the lane
  std::ptrdiff_t at;  // that output's weight
  bool is_there[kGroups];

  __device__ LanePiece(const HeadShape& s, int pair, int lane)
      : action(pair / s.hidden),
        unit(pair % s.hidden),
        first(lane),
        at((static_cast<std::ptrdiff_t>(action) * s.members * s.hidden + unit) * s.outputs + lane) {
    LookAt(s);
  }
  __device__ bool IsLastOfRow(const HeadShape& s) const {
    return kOnePiece || first / kWarpSize * kWarpSize + kPiece >= s.outputs;
  }
  __device__ void Next(const HeadShape& s) {
    if (!IsLastOfRow(s)) {
      first += kPiece;
      at += kPiece;
    } else {
      ++member;
      at += static_cast<std::ptrdiff_t>(s.hidden) * s.outputs - first / kPiece * kPiece;
      first %= kPiece;
    }
    if (!kOnePiece) LookAt(s);
  }

  static constexpr int kPiece = kGroups * kWarpSize;

 private:
  // If a row is one piece, only its last group has outputs that are not there.
  __device__ void LookAt(const HeadShape& s) {
#pragma unroll
    for (int i = 0; i < kGroups; ++i) {
      is_there[i] = (kOnePiece && i + 1 < kGroups) || first + i * kWarpSize < s.outputs;
    }
  }
};

// g: the piece's gradient, samples in ascending order.
template <int kGroups, bool kOnePiece>
__device__ void AddGradient(const HeadStep& step, const LanePiece<kGroups, kOnePiece>& piece,
                            float (&g)[kGroups]) {
  const HeadShape& s = step.shape;
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const float* units =
      step.gradient.hidden + (s.separate_hidden ? piece.member * s.hidden : 0) + piece.unit;
  const float* d_out = step.gradient.d_out + piece.member * s.outputs + piece.first;
  for (int group = 0; group < step.gradient.batch; group += kWarpSize) {
    const int mine = group + lane;
    const bool learns = mine < step.gradient.batch &&
                        __ldg(step.gradient.actions + mine) == piece.action &&
                        Learns(step.gradient.masks, mine, piece.member);
    for (unsigned left = __ballot_sync(kAllLanes, learns); left != 0; left &= left - 1) {
      const int b = group + __ffs(static_cast<int>(left)) - 1;
      const float unit = __ldg(units + b * s.hidden_total());
      const float* d = d_out + b * (s.members * s.outputs);
#pragma unroll
      for (int i = 0; i < kGroups; ++i) {
        if (piece.is_there[i]) g[i] = fmaf(unit, __ldg(d + i * kWarpSize), g[i]);
      }
    }
  }
}

// p, m and v of a piece, in shared memory. Every lane copies what it needs itself.
template <int kGroups>
struct Stage {
  float p[kGroups][kWarpSize], m[kGroups][kWarpSize], v[kGroups][kWarpSize];
};

template <int kGroups, bool kOnePiece>
__device__ void StartLoad(const ParameterBlock& from, const LanePiece<kGroups, kOnePiece>& piece,
                          int lane, Stage<kGroups>& to) {
  const float* p = from.p + piece.at;
  const float* m = from.m + piece.at;
  const float* v = from.v + piece.at;
#pragma unroll
  for (int i = 0; i < kGroups; ++i) {
    if (!piece.is_there[i]) continue;
    __pipeline_memcpy_async(&to.p[i][lane], p + i * kWarpSize, sizeof(float));
    __pipeline_memcpy_async(&to.m[i][lane], m + i * kWarpSize, sizeof(float));
    __pipeline_memcpy_async(&to.v[i][lane], v + i * kWarpSize, sizeof(float));
  }
}

// Returns the sum of the lane's new weights. The moments are not read again before the next update:
// they leave the cache to the weights.
template <bool kAdam, int kGroups, bool kOnePiece>
__device__ float StepPiece(const HeadStep& step, const StepScales& scales,
                           const LanePiece<kGroups, kOnePiece>& piece, const float (&g)[kGroups],
                           const Stage<kGroups>& from, int lane) {
  float* p_to = step.weights.to.p + piece.at;
  float* m_to = step.weights.to.m + piece.at;
  float* v_to = step.weights.to.v + piece.at;
  float sum = 0;
#pragma unroll
  for (int i = 0; i < kGroups; ++i) {
    if (!piece.is_there[i]) continue;
    float p = from.p[i][lane];
    float m = from.m[i][lane];
    float v = from.v[i][lane];
    Step<kAdam>(step.rules, scales, g[i] * scales.gradient_scale, p, m, v);
    p_to[i * kWarpSize] = p;
    __stcs(m_to + i * kWarpSize, m);
    __stcs(v_to + i * kWarpSize, v);
    sum += p;
  }
  return sum;
}

// The average of one row, by one lane.
__device__ void PutMean(const HeadStep& step, int action, int member, int unit, float mean) {
  const HeadShape& s = step.shape;
  step.tables.member_weights[(member * s.actions + action) * s.hidden + unit] = mean;
  if (!s.separate_hidden) return;
  step.tables.mean_weights[action * s.hidden_total() + member * s.hidden + unit] =
      mean / static_cast<float>(s.members);
}

// A warp takes the rows of one (action, hidden unit), one member after the other; while it works on
// one piece the next is on its way. The warps of a block read the same derivatives.
template <bool kAdam, int kGroups, bool kOnePiece>
__global__ void __launch_bounds__(kThreads, kBlocksPerProcessor)
    HeadOptimizerKernel(const __grid_constant__ HeadStep step) {
  extern __shared__ __align__(16) unsigned char memory[];
  if (!IsDue(step.kind, *step.state)) return;
  const StepScales scales = StepScalesOf(step.kind, *step.state);
  const HeadShape& s = step.shape;
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
  auto* stages = reinterpret_cast<Stage<kGroups>*>(memory) + 2 * warp;
  for (int pair = static_cast<int>(blockIdx.x) * kWarps + warp; pair < s.actions * s.hidden;
       pair += static_cast<int>(gridDim.x) * kWarps) {
    LanePiece<kGroups, kOnePiece> piece(s, pair, lane);
    LanePiece<kGroups, kOnePiece> next = piece;
    StartLoad(step.weights.from, next, lane, stages[0]);
    __pipeline_commit();
    float sum = 0;    // of a row
    float means = 0;  // of the rows
    for (int stage = 0; piece.member < s.members; stage = 1 - stage) {
      next.Next(s);
      if (next.member < s.members) StartLoad(step.weights.from, next, lane, stages[1 - stage]);
      __pipeline_commit();
      float g[kGroups] = {};
      AddGradient(step, piece, g);
      __pipeline_wait_prior(1);
      sum += StepPiece<kAdam>(step, scales, piece, g, stages[stage], lane);
      if (piece.IsLastOfRow(s)) {
        const float mean = WarpSum(sum) / static_cast<float>(s.outputs);
        means += mean;
        if (lane == 0) PutMean(step, piece.action, piece.member, piece.unit, mean);
        sum = 0;
      }
      piece = next;
    }
    if (lane == 0 && !s.separate_hidden) {
      step.tables.mean_weights[pair] = means / static_cast<float>(s.members);
    }
  }
}

template <int kGroups>
constexpr std::size_t kSharedBytes = 2 * kWarps * sizeof(Stage<kGroups>);

struct HeadKernel {
  void (*kernel)(HeadStep);
  std::size_t shared_bytes;
};
template <int kGroups, bool kOnePiece>
struct AdamKernels {
  static HeadKernel Get() {
    return {HeadOptimizerKernel<true, kGroups, kOnePiece>, kSharedBytes<kGroups>};
  }
};
template <int kGroups, bool kOnePiece>
struct RmsPropKernels {
  static HeadKernel Get() {
    return {HeadOptimizerKernel<false, kGroups, kOnePiece>, kSharedBytes<kGroups>};
  }
};

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
  const int blocks = (shape.actions * shape.hidden + kWarps - 1) / kWarps;
  LaunchKernel(
      "optimiser of the head", chosen.kernel,
      {.grid = static_cast<unsigned>(std::min(kBlocksPerProcessor * multiprocessors, blocks)),
       .block = kThreads,
       .shared_bytes = chosen.shared_bytes,
       .stream = stream},
      HeadStep{StepRules(rules), kind, shape, gradient, weights, state, tables});
}

}  // namespace uper
