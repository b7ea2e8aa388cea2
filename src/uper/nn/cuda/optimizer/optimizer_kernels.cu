#include <algorithm>

#include "uper/base/arithmetic.h"
#include "uper/nn/cuda/head/head_common.cuh"
#include "uper/nn/cuda/optimizer/optimizer_kernels.h"
#include "uper/nn/cuda/optimizer/optimizer_step.cuh"
#include "uper/nn/cuda/ptx/reductions.cuh"
#include "uper/nn/cuda/runtime/launch.cuh"

namespace uper::cuda {
namespace {

constexpr int kThreads = 256;

__global__ void BeginUpdateKernel(OptimizerRules rules, UpdateState* state) {
  state->rate = static_cast<float>(rules.learning_rate);
  if (!rules.adam) return;
  const double t = static_cast<double>(state->updates + 1);
  state->rate = static_cast<float>(rules.learning_rate / (1 - pow(rules.first_moment_decay, t)));
  state->root_scale = static_cast<float>(1 / sqrt(1 - pow(rules.second_moment_decay, t)));
}

// One parameter, in registers.
struct Entry {
  float p = 0, m = 0, v = 0, g = 0;
};
__device__ Entry Load(const FinishUpdate& call, std::size_t i) {
  const ParameterBlock& from = call.parameters.from;
  return {from.p[i], from.m[i], from.v[i], call.gradient[i]};
}

// Updates and stores a parameter. Returns its new value.
template <bool kAdam>
__device__ float UpdateEntry(const UpdateRules& rules, const UpdateScales& scales,
                             const FinishUpdate& call, std::size_t i, Entry entry) {
  UpdateParameter<kAdam>(rules, scales, entry.g * scales.gradient_scale, entry.p, entry.m, entry.v);
  const ParameterBlock& to = call.parameters.to;
  to.p[i] = entry.p;
  to.m[i] = entry.m;
  to.v[i] = entry.v;
  return entry.p;
}

// Parameters of one thread: every step-th from `first` on.
struct ThreadShare {
  std::size_t first = 0, end = 0, step = 1;

  __device__ bool has_first() const { return first < end; }
};
// A thread's share of a range that `count` blocks split.
__device__ ThreadShare ShareOf(const GradientRange& range, int index, int count) {
  return {.first = range.begin + std::size_t{1} * index * kThreads + threadIdx.x,
          .end = range.end,
          .step = std::size_t{1} * count * kThreads};
}
// A thread's share of the bias: a block handles one (action, member), or the one shared bias.
__device__ ThreadShare BiasShareOf(const FinishUpdate& call, int index) {
  const std::size_t row = call.shape.shared_bias ? 1 : call.shape.outputs;
  const std::size_t begin = call.bias + index * row;
  return {.first = begin + threadIdx.x, .end = begin + row, .step = kThreads};
}

// The first parameter is already in registers. Returns the sum of the new parameters.
template <bool kAdam>
__device__ float UpdateShare(const UpdateRules& rules, const UpdateScales& scales,
                             const FinishUpdate& call, const ThreadShare& share,
                             const Entry& first) {
  if (!share.has_first()) return 0;
  float sum = UpdateEntry<kAdam>(rules, scales, call, share.first, first);
#pragma unroll 1
  for (std::size_t i = share.first + share.step; i < share.end; i += share.step) {
    sum += UpdateEntry<kAdam>(rules, scales, call, i, Load(call, i));
  }
  return sum;
}

// Writes the means of a block's bias, from the sum over a thread's parameters.
__device__ void PutBiasMean(const FinishUpdate& call, int index, float sum) {
  __shared__ float scratch[kWarpSize];
  const HeadShape& s = call.shape;
  sum = BlockSum(sum, scratch);
  if (s.shared_bias) {
    for (int i = static_cast<int>(threadIdx.x); i < s.members * s.actions; i += kThreads) {
      call.mean_weights.member_bias[i] = sum;
    }
  } else if (threadIdx.x == 0) {
    call.mean_weights.member_bias[index % s.members * s.actions + index / s.members] =
        sum / static_cast<float>(s.outputs);
  }
}

// Averages the head's speculatively updated weights over the members; a thread handles one unit of
// one action.
__device__ void PutMeansOfMembers(const FinishUpdate& call, int index) {
  const HeadShape& s = call.shape;
  const int i = index * kThreads + static_cast<int>(threadIdx.x);
  if (i < s.actions * s.hidden) PutMeanOfMembers(s, call.mean_weights, i / s.hidden, i % s.hidden);
}

// The outcome of the update, from all parts of the gradient's norm and of the loss.
struct Outcome {
  double loss, norm;
  bool finite;
  float scale;  // of the gradient

  __device__ void Report(const FinishUpdate& call) const {
    UpdateState& state = *call.state;
    state.loss = loss;
    state.gradient_norm = norm;
    state.finite = finite ? 1 : 0;
    if (finite) state.gradient_scale = scale;
    if (finite) ++state.updates;
    *call.report = state;
  }
};

// The sum over a thread's share of `count` entries; kAtOnce of them are loaded at a time, also at
// the end.
template <int kAtOnce, typename Entry>
__device__ double ThreadSum(int count, const Entry& entry) {
  double sum = 0;
#pragma unroll 1
  for (int first = static_cast<int>(threadIdx.x); first < count; first += kAtOnce * kThreads) {
    double values[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const int at = first + i * kThreads;
      values[i] = at < count ? entry(at) : 0.0;
    }
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) sum += values[i];
  }
  return sum;
}

__device__ Outcome FindOutcome(const FinishUpdate& call) {
  __shared__ double scratch[2][kWarpSize];
  const double own_squares =
      ThreadSum<4>(call.square_count, [&](int i) { return call.squares[i]; });
  const double own_loss =
      ThreadSum<2>(call.member_count, [&](int i) { return call.members[i].share; });
  const double squares = BlockSum(own_squares, scratch[0]);
  const double loss = BlockSum(own_loss, scratch[1]);
  const double max_norm = call.rules.max_global_norm;
  const double norm = squares < 0 ? 0 : sqrt(squares);  // rounding may make it negative
  const bool clipped = max_norm > 0 && norm >= max_norm;
  return {.loss = loss,
          .norm = norm,
          .finite = isfinite(loss) && isfinite(norm),
          .scale = clipped ? static_cast<float>(max_norm / norm) : 1.0F};
}

// The work of the blocks: first the head's bias, then the means over members, then everything else.
struct Division {
  int bias = 0, means = 0, rest = 0;

  __host__ __device__ int blocks() const { return bias + means + rest; }
};

// Every block computes the outcome itself. Meanwhile the first parameter of each thread is loaded.
template <bool kAdam>
__global__ void __launch_bounds__(kThreads)
    FinishUpdateKernel(const __grid_constant__ FinishUpdate call,
                       const __grid_constant__ UpdateRules rules,
                       const __grid_constant__ Division division) {
  AwaitPredecessor();
  const int block = static_cast<int>(blockIdx.x);
  const bool bias = block < division.bias;
  const int index = block - division.bias - division.means;
  if (!bias && index < 0) return PutMeansOfMembers(call, block - division.bias);
  const ThreadShare share =
      bias ? BiasShareOf(call, block) : ShareOf(call.remaining, index, division.rest);
  Entry first;
  if (share.has_first()) first = Load(call, share.first);
  UpdateScales scales = UpdateScalesOf(OptimizerPass::kFinal, *call.state);
  const Outcome outcome = FindOutcome(call);
  scales.gradient_scale = outcome.scale;
  if (index == 0 && threadIdx.x == 0) outcome.Report(call);
  if (!outcome.finite) return;
  const float sum = UpdateShare<kAdam>(rules, scales, call, share, first);
  if (bias) return PutBiasMean(call, block, sum);
  if (outcome.scale < 1) {
    const ThreadShare again = ShareOf(call.speculative, index, division.rest);
    if (again.has_first()) {
      UpdateShare<kAdam>(rules, scales, call, again, Load(call, again.first));
    }
  }
}

}  // namespace

OptimizerRules RulesOf(const std::variant<AdamOptions, RmsPropOptions>& optimizer,
                       double max_global_norm) {
  if (const auto* adam = std::get_if<AdamOptions>(&optimizer)) {
    return {.adam = true,
            .learning_rate = adam->learning_rate,
            .first_moment_decay = adam->first_moment_decay,
            .second_moment_decay = adam->second_moment_decay,
            .epsilon = adam->epsilon,
            .max_global_norm = max_global_norm};
  }
  const auto& rmsprop = std::get<RmsPropOptions>(optimizer);
  return {.adam = false,
          .learning_rate = rmsprop.learning_rate,
          .first_moment_decay = rmsprop.decay,
          .second_moment_decay = rmsprop.decay,
          .epsilon = rmsprop.epsilon,
          .epsilon_inside_root = rmsprop.epsilon_placement == EpsilonPlacement::kInsideRoot,
          .max_global_norm = max_global_norm};
}

namespace {

int BlocksFor(std::size_t items) { return static_cast<int>(CeilDiv<std::size_t>(items, kThreads)); }

}  // namespace

void LaunchFinishUpdate(const FinishUpdate& call, cudaStream_t stream) {
  constexpr int kMaxBlocks = 528;
  const HeadShape& head = call.shape;
  Division division{
      .rest = std::clamp(BlocksFor(call.remaining.end - call.remaining.begin), 1, kMaxBlocks)};
  if (call.mean_weights.member_bias != nullptr) {
    division.bias = head.shared_bias ? 1 : head.actions * head.members;
  }
  if (call.mean_weights.ensemble_weights != nullptr && !head.separate_hidden) {
    division.means = BlocksFor(std::size_t{1} * head.actions * head.hidden);
  }
  LaunchKernel(
      "end of the update", call.rules.adam ? FinishUpdateKernel<true> : FinishUpdateKernel<false>,
      {.grid = static_cast<unsigned>(division.blocks()), .block = kThreads, .stream = stream}, call,
      UpdateRules(call.rules), division);
}

void LaunchBeginUpdate(const OptimizerRules& rules, UpdateState* state, cudaStream_t stream) {
  BeginUpdateKernel<<<1, 1, 0, stream>>>(rules, state);
  CheckCuda(cudaGetLastError(), "constants of the update");
}

}  // namespace uper::cuda
