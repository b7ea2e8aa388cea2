#include <algorithm>

#include "uper/nn/cuda/launch.cuh"
#include "uper/nn/cuda/optimizer_kernels.h"
#include "uper/nn/cuda/optimizer_step.cuh"
#include "uper/nn/cuda/reductions.cuh"

namespace uper {
namespace {

constexpr int kThreads = 256;

__global__ void BeginStepKernel(OptimizerRules rules, StepState* state) {
  state->rate = static_cast<float>(rules.learning_rate);
  if (!rules.adam) return;
  const double t = static_cast<double>(state->updates + 1);
  state->rate = static_cast<float>(rules.learning_rate / (1 - pow(rules.decay1, t)));
  state->root_scale = static_cast<float>(1 / sqrt(1 - pow(rules.decay2, t)));
}

// One parameter, in registers.
struct Entry {
  float p = 0, m = 0, v = 0, g = 0;
};
__device__ Entry Load(const FinishStep& call, std::size_t i) {
  const ParameterBlock& from = call.parameters.from;
  return {from.p[i], from.m[i], from.v[i], call.gradient[i]};
}

// Steps it and stores it. Returns the new parameter.
template <bool kAdam>
__device__ float StepEntry(const StepRules& rules, const StepScales& scales, const FinishStep& call,
                           std::size_t i, Entry entry) {
  Step<kAdam>(rules, scales, entry.g * scales.gradient_scale, entry.p, entry.m, entry.v);
  const ParameterBlock& to = call.parameters.to;
  to.p[i] = entry.p;
  to.m[i] = entry.m;
  to.v[i] = entry.v;
  return entry.p;
}

// The share of one block of many: every count-th group of kThreads.
struct BlockShare {
  std::size_t first, end, step;  // of a thread

  __device__ BlockShare(const GradientRange& range, unsigned index, unsigned count)
      : first(range.begin + std::size_t{index} * kThreads + threadIdx.x),
        end(range.end),
        step(std::size_t{count} * kThreads) {}
};
template <bool kAdam>
__device__ void StepShare(const StepRules& rules, const StepScales& scales, const FinishStep& call,
                          const BlockShare& share) {
  for (std::size_t i = share.first; i < share.end; i += share.step) {
    StepEntry<kAdam>(rules, scales, call, i, Load(call, i));
  }
}

// The bias of one (action, member), one warp: all of a lane's entries are on their way before the
// first is stepped. Returns the mean of the new ones, to all lanes.
template <bool kAdam>
__device__ float StepBiasRow(const StepRules& rules, const StepScales& scales,
                             const FinishStep& call, std::size_t row) {
  constexpr int kEntries = 7;
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const auto& [from, to] = call.parameters;
  float sum = 0;
  for (int first = lane; first < call.shape.outputs; first += kEntries * kWarpSize) {
    float g[kEntries], p[kEntries], m[kEntries], v[kEntries];
#pragma unroll
    for (int i = 0; i < kEntries; ++i) {
      if (first + i * kWarpSize >= call.shape.outputs) break;
      const std::size_t at = row + first + i * kWarpSize;
      g[i] = call.gradient[at] * scales.gradient_scale;
      p[i] = from.p[at];
      m[i] = from.m[at];
      v[i] = from.v[at];
    }
#pragma unroll
    for (int i = 0; i < kEntries; ++i) {
      if (first + i * kWarpSize >= call.shape.outputs) break;
      const std::size_t at = row + first + i * kWarpSize;
      Step<kAdam>(rules, scales, g[i], p[i], m[i], v[i]);
      to.p[at] = p[i];
      to.m[at] = m[i];
      to.v[at] = v[i];
      sum += p[i];
    }
  }
  return WarpSum(sum) / static_cast<float>(call.shape.outputs);
}

// The bias of one action and its averages; a warp a member at a time.
template <bool kAdam>
__device__ void StepBias(const StepRules& rules, const StepScales& scales, const FinishStep& call,
                         int action, float* means) {
  const HeadShape& s = call.shape;
  for (int k = static_cast<int>(threadIdx.x) / kWarpSize; k < s.members;
       k += kThreads / kWarpSize) {
    const float mean = StepBiasRow<kAdam>(
        rules, scales, call, call.bias + (std::size_t{1} * action * s.members + k) * s.outputs);
    if (threadIdx.x % kWarpSize > 0) continue;
    means[k] = mean;
    call.tables.member_bias[k * s.actions + action] = mean;
  }
  __syncthreads();
  if (threadIdx.x > 0) return;
  float sum = 0;
  for (int k = 0; k < s.members; ++k) sum += means[k];
  call.tables.mean_bias[action] = sum / static_cast<float>(s.members);
}

// One bias for all outputs: one thread.
template <bool kAdam>
__device__ void StepSharedBias(const StepRules& rules, const StepScales& scales,
                               const FinishStep& call) {
  const float bias = StepEntry<kAdam>(rules, scales, call, call.bias, Load(call, call.bias));
  for (int i = 0; i < call.shape.members * call.shape.actions; ++i) {
    call.tables.member_bias[i] = bias;
  }
  for (int a = 0; a < call.shape.actions; ++a) call.tables.mean_bias[a] = bias;
}

// What the step is like, from all parts of the gradient's norm and of the loss.
struct Outcome {
  double loss, norm;
  bool finite;
  float scale;  // of the gradient

  __device__ void Report(const FinishStep& call) const {
    StepState& state = *call.state;
    state.loss = loss;
    state.gradient_norm = norm;
    state.finite = finite ? 1 : 0;
    if (finite) state.gradient_scale = scale;
    if (finite) ++state.updates;
    *call.report = state;
  }
};

__device__ Outcome FindOutcome(const FinishStep& call) {
  __shared__ double scratch[2][kWarpSize];
  double squares = 0;
  double loss = 0;
#pragma unroll 4
  for (int i = static_cast<int>(threadIdx.x); i < call.square_count; i += kThreads) {
    squares += call.squares[i];
  }
#pragma unroll 2
  for (int i = static_cast<int>(threadIdx.x); i < call.member_count; i += kThreads) {
    loss += call.members[i].share;
  }
  squares = BlockSum(squares, scratch[0]);
  loss = BlockSum(loss, scratch[1]);
  const double max_norm = call.rules.max_global_norm;
  const double norm = squares < 0 ? 0 : sqrt(squares);  // rounding may take it below 0
  const bool clipped = max_norm > 0 && norm >= max_norm;
  return {.loss = loss,
          .norm = norm,
          .finite = isfinite(loss) && isfinite(norm),
          .scale = clipped ? static_cast<float>(max_norm / norm) : 1.0F};
}

// Every block finds out by itself how the step is taken; what a thread steps first is on its way
// meanwhile. The first blocks do the bias.
template <bool kAdam>
__global__ void __launch_bounds__(kThreads)
    FinishStepKernel(const __grid_constant__ FinishStep call,
                     const __grid_constant__ StepRules rules, int bias_blocks) {
  extern __shared__ __align__(16) float means[];  // [member]
  const bool is_bias = static_cast<int>(blockIdx.x) < bias_blocks;
  const unsigned index = blockIdx.x - bias_blocks;
  const unsigned count = gridDim.x - bias_blocks;
  BlockShare share(call.plain, index, count);
  const bool has_first = !is_bias && share.first < share.end;
  Entry first;
  if (has_first) first = Load(call, share.first);
  StepScales scales = StepScalesOf(StepKind::kPlain, *call.state);
  const Outcome outcome = FindOutcome(call);
  scales.gradient_scale = outcome.scale;
  if (blockIdx.x == 0 && threadIdx.x == 0) outcome.Report(call);
  if (!outcome.finite) return;
  if (is_bias && call.shape.shared_bias) {
    if (threadIdx.x == 0) StepSharedBias<kAdam>(rules, scales, call);
  } else if (is_bias) {
    StepBias<kAdam>(rules, scales, call, static_cast<int>(blockIdx.x), means);
  } else {
    if (has_first) StepEntry<kAdam>(rules, scales, call, share.first, first);
    share.first += share.step;
    StepShare<kAdam>(rules, scales, call, share);
    if (outcome.scale < 1) {
      StepShare<kAdam>(rules, scales, call, BlockShare(call.ahead, index, count));
    }
  }
}

int Pieces(std::size_t total, int piece) { return static_cast<int>((total + piece - 1) / piece); }

}  // namespace

OptimizerRules RulesOf(const std::variant<AdamOptions, RmsPropOptions>& optimizer,
                       double max_global_norm) {
  if (const auto* adam = std::get_if<AdamOptions>(&optimizer)) {
    return {.adam = true,
            .learning_rate = adam->learning_rate,
            .decay1 = adam->beta1,
            .decay2 = adam->beta2,
            .epsilon = adam->epsilon,
            .max_global_norm = max_global_norm};
  }
  const auto& rmsprop = std::get<RmsPropOptions>(optimizer);
  return {.adam = false,
          .learning_rate = rmsprop.learning_rate,
          .decay1 = rmsprop.decay,
          .decay2 = rmsprop.decay,
          .epsilon = rmsprop.epsilon,
          .inside_root = rmsprop.epsilon_place == EpsilonPlace::kInsideRoot,
          .max_global_norm = max_global_norm};
}

void LaunchFinishStep(const FinishStep& call, cudaStream_t stream) {
  constexpr int kMostBlocks = 528;
  const int blocks =
      std::clamp(Pieces(call.plain.end - call.plain.begin, kThreads), 1, kMostBlocks);
  const bool has_bias = call.tables.mean_bias != nullptr;
  const int bias_blocks = !has_bias ? 0 : call.shape.shared_bias ? 1 : call.shape.actions;
  LaunchKernel("end of the step",
               call.rules.adam ? FinishStepKernel<true> : FinishStepKernel<false>,
               {.grid = static_cast<unsigned>(bias_blocks + blocks),
                .block = kThreads,
                .shared_bytes = sizeof(float) * call.shape.members,
                .stream = stream},
               call, StepRules(call.rules), bias_blocks);
}

void LaunchBeginStep(const OptimizerRules& rules, StepState* state, cudaStream_t stream) {
  BeginStepKernel<<<1, 1, 0, stream>>>(rules, state);
  CheckCuda(cudaGetLastError(), "constants of the step");
}

}  // namespace uper
