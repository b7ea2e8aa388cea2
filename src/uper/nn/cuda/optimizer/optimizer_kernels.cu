#include <algorithm>

#include "uper/nn/cuda/head/head_common.cuh"
#include "uper/nn/cuda/optimizer/optimizer_kernels.h"
#include "uper/nn/cuda/optimizer/optimizer_step.cuh"
#include "uper/nn/cuda/ptx/reductions.cuh"
#include "uper/nn/cuda/runtime/launch.cuh"

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

// Parameters of one thread: every step-th from `first` on.
struct ThreadShare {
  std::size_t first = 0, end = 0, step = 1;

  __device__ bool has_first() const { return first < end; }
};
// Of a range that `count` blocks share.
__device__ ThreadShare ShareOf(const GradientRange& range, int index, int count) {
  return {.first = range.begin + std::size_t{1} * index * kThreads + threadIdx.x,
          .end = range.end,
          .step = std::size_t{1} * count * kThreads};
}
// Of the bias: a block has one (action, member), or the one number that all share.
__device__ ThreadShare BiasShareOf(const FinishStep& call, int index) {
  const std::size_t row = call.shape.shared_bias ? 1 : call.shape.outputs;
  const std::size_t begin = call.bias + index * row;
  return {.first = begin + threadIdx.x, .end = begin + row, .step = kThreads};
}

// The first parameter is in a register already. Returns the sum of the new ones.
template <bool kAdam>
__device__ float StepShare(const StepRules& rules, const StepScales& scales, const FinishStep& call,
                           const ThreadShare& share, const Entry& first) {
  if (!share.has_first()) return 0;
  float sum = StepEntry<kAdam>(rules, scales, call, share.first, first);
#pragma unroll 1
  for (std::size_t i = share.first + share.step; i < share.end; i += share.step) {
    sum += StepEntry<kAdam>(rules, scales, call, i, Load(call, i));
  }
  return sum;
}

// The averages of a block's bias, from the sum over a thread's part of it.
__device__ void PutBiasMean(const FinishStep& call, int index, float sum) {
  __shared__ float scratch[kWarpSize];
  const HeadShape& s = call.shape;
  sum = BlockSum(sum, scratch);
  if (s.shared_bias) {
    for (int i = static_cast<int>(threadIdx.x); i < s.members * s.actions; i += kThreads) {
      call.tables.member_bias[i] = sum;
    }
  } else if (threadIdx.x == 0) {
    call.tables.member_bias[index % s.members * s.actions + index / s.members] =
        sum / static_cast<float>(s.outputs);
  }
}

// Of the head's weights as they were stepped ahead; a thread has one unit of one action.
__device__ void PutMeansOfMembers(const FinishStep& call, int index) {
  const HeadShape& s = call.shape;
  const int i = index * kThreads + static_cast<int>(threadIdx.x);
  if (i < s.actions * s.hidden) PutMeanOfMembers(s, call.tables, i / s.hidden, i % s.hidden);
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

// The sum over a thread's share of `count` entries; kAtOnce of them are on their way at a time,
// also at the end.
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

__device__ Outcome FindOutcome(const FinishStep& call) {
  __shared__ double scratch[2][kWarpSize];
  const double own_squares =
      ThreadSum<4>(call.square_count, [&](int i) { return call.squares[i]; });
  const double own_loss =
      ThreadSum<2>(call.member_count, [&](int i) { return call.members[i].share; });
  const double squares = BlockSum(own_squares, scratch[0]);
  const double loss = BlockSum(own_loss, scratch[1]);
  const double max_norm = call.rules.max_global_norm;
  const double norm = squares < 0 ? 0 : sqrt(squares);  // rounding may take it below 0
  const bool clipped = max_norm > 0 && norm >= max_norm;
  return {.loss = loss,
          .norm = norm,
          .finite = isfinite(loss) && isfinite(norm),
          .scale = clipped ? static_cast<float>(max_norm / norm) : 1.0F};
}

// What the blocks do: those of the head's bias come first, then those of the means over members,
// then those of everything else.
struct Division {
  int bias = 0, means = 0, rest = 0;

  __host__ __device__ int blocks() const { return bias + means + rest; }
};

// Every block finds out by itself how the step is taken; what a thread steps first is on its way
// meanwhile.
template <bool kAdam>
__global__ void __launch_bounds__(kThreads)
    FinishStepKernel(const __grid_constant__ FinishStep call,
                     const __grid_constant__ StepRules rules,
                     const __grid_constant__ Division division) {
  AwaitPredecessor();
  const int block = static_cast<int>(blockIdx.x);
  const bool bias = block < division.bias;
  const int index = block - division.bias - division.means;
  if (!bias && index < 0) return PutMeansOfMembers(call, block - division.bias);
  const ThreadShare share =
      bias ? BiasShareOf(call, block) : ShareOf(call.plain, index, division.rest);
  Entry first;
  if (share.has_first()) first = Load(call, share.first);
  StepScales scales = StepScalesOf(StepKind::kPlain, *call.state);
  const Outcome outcome = FindOutcome(call);
  scales.gradient_scale = outcome.scale;
  if (index == 0 && threadIdx.x == 0) outcome.Report(call);
  if (!outcome.finite) return;
  const float sum = StepShare<kAdam>(rules, scales, call, share, first);
  if (bias) return PutBiasMean(call, block, sum);
  if (outcome.scale < 1) {
    const ThreadShare again = ShareOf(call.ahead, index, division.rest);
    if (again.has_first()) {
      StepShare<kAdam>(rules, scales, call, again, Load(call, again.first));
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
  const HeadShape& head = call.shape;
  Division division{
      .rest = std::clamp(Pieces(call.plain.end - call.plain.begin, kThreads), 1, kMostBlocks)};
  if (call.tables.member_bias != nullptr) {
    division.bias = head.shared_bias ? 1 : head.actions * head.members;
  }
  if (call.tables.mean_weights != nullptr && !head.separate_hidden) {
    division.means = Pieces(std::size_t{1} * head.actions * head.hidden, kThreads);
  }
  LaunchKernel(
      "end of the step", call.rules.adam ? FinishStepKernel<true> : FinishStepKernel<false>,
      {.grid = static_cast<unsigned>(division.blocks()), .block = kThreads, .stream = stream}, call,
      StepRules(call.rules), division);
}

void LaunchBeginStep(const OptimizerRules& rules, StepState* state, cudaStream_t stream) {
  BeginStepKernel<<<1, 1, 0, stream>>>(rules, state);
  CheckCuda(cudaGetLastError(), "constants of the step");
}

}  // namespace uper
