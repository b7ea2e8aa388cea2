#include <algorithm>

#include "uper/nn/cuda/cuda_error.h"
#include "uper/nn/cuda/optimizer_kernels.h"
#include "uper/nn/cuda/reductions.cuh"

namespace uper {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / kWarpSize;

__global__ void __launch_bounds__(kThreads)
    SquaresKernel(const __grid_constant__ StoredGradient stored, double* squares) {
  __shared__ double scratch[kWarpSize];
  double sum = 0;
  for (int range = 0; range < kGradientRanges; ++range) {
    const std::size_t end = stored.ranges[range].end;
#pragma unroll 4
    for (std::size_t i = stored.ranges[range].begin + blockIdx.x * kThreads + threadIdx.x; i < end;
         i += std::size_t{kSquareBlocks} * kThreads) {
      const double g = static_cast<double>(stored.gradient[i]);
      sum += g * g;
    }
  }
  sum = BlockSum(sum, scratch);
  if (threadIdx.x == 0) squares[blockIdx.x] = sum;
}

// One block.
__global__ void __launch_bounds__(kThreads)
    FinishStepKernel(const __grid_constant__ FinishStep call) {
  __shared__ double scratch[kWarpSize];
  double squares = 0;
  for (int i = static_cast<int>(threadIdx.x); i < call.square_count; i += kThreads) {
    squares += call.squares[i];
  }
  squares = BlockSum(squares, scratch);
  double loss = 0;
  for (int i = static_cast<int>(threadIdx.x); i < call.member_count; i += kThreads) {
    loss += call.members[i].share;
  }
  loss = BlockSum(loss, scratch);
  if (threadIdx.x > 0) return;
  const OptimizerRules& rules = call.rules;
  StepState& state = *call.state;
  const double norm = sqrt(squares);
  state.loss = loss;
  state.gradient_norm = norm;
  state.finite = isfinite(loss) && isfinite(norm) ? 1 : 0;
  if (state.finite == 0) return;
  const bool clipped = rules.max_global_norm > 0 && norm >= rules.max_global_norm;
  state.gradient_scale = clipped ? static_cast<float>(rules.max_global_norm / norm) : 1.0F;
  ++state.updates;
  state.rate = static_cast<float>(rules.learning_rate);
  if (!rules.adam) return;
  const double t = static_cast<double>(state.updates);
  state.rate = static_cast<float>(rules.learning_rate / (1 - pow(rules.decay1, t)));
  state.root_scale = static_cast<float>(1 / sqrt(1 - pow(rules.decay2, t)));
}

// The constants in the precision that the loops use.
struct Constants {
  float decay1, other1, decay2, other2, epsilon;
  float gradient_scale, rate, root_scale;
  bool inside_root;
};
__device__ Constants ConstantsOf(const OptimizerRules& rules, const StepState& state) {
  return {.decay1 = static_cast<float>(rules.decay1),
          .other1 = static_cast<float>(1 - rules.decay1),
          .decay2 = static_cast<float>(rules.decay2),
          .other2 = static_cast<float>(1 - rules.decay2),
          .epsilon = static_cast<float>(rules.epsilon),
          .gradient_scale = state.gradient_scale,
          .rate = state.rate,
          .root_scale = state.root_scale,
          .inside_root = rules.inside_root};
}

// One parameter; g is already scaled.
template <bool kAdam>
__device__ void Step(const Constants& c, float g, float& p, float& m, float& v) {
  m = fmaf(c.decay1, m, c.other1 * g);
  v = fmaf(c.decay2, v, c.other2 * (g * g));
  if (kAdam) {
    p -= c.rate * m / fmaf(sqrtf(v), c.root_scale, c.epsilon);
  } else {
    const float variance = fmaxf(0.0F, fmaf(-m, m, v));
    const float divisor = c.inside_root ? sqrtf(variance + c.epsilon) : sqrtf(variance) + c.epsilon;
    p -= c.rate * g / divisor;
  }
}

template <bool kAdam>
__global__ void __launch_bounds__(kThreads)
    OptimizerKernel(OptimizerRules rules, const __grid_constant__ StoredGradient stored,
                    ParameterBlock block, const StepState* state) {
  if (state->finite == 0) return;
  const Constants c = ConstantsOf(rules, *state);
  for (int range = 0; range < kGradientRanges; ++range) {
    const std::size_t end = stored.ranges[range].end;
    for (std::size_t i = stored.ranges[range].begin + blockIdx.x * kThreads + threadIdx.x; i < end;
         i += static_cast<std::size_t>(gridDim.x) * kThreads) {
      float p = block.p[i];
      float m = block.m[i];
      float v = block.v[i];
      Step<kAdam>(c, stored.gradient[i] * c.gradient_scale, p, m, v);
      block.p[i] = p;
      block.m[i] = m;
      block.v[i] = v;
    }
  }
}

constexpr int kUnroll = 7;  // vectors of a row in flight: 201 outputs are one round

// Grid: action, rows of hidden units. A warp is one hidden unit, for all members in turn; its lanes
// go along the outputs.
template <bool kAdam>
__global__ void __launch_bounds__(kThreads)
    HeadOptimizerKernel(OptimizerRules rules, HeadShape s,
                        const __grid_constant__ HeadGradient gradient, ParameterBlock block,
                        const StepState* state, HeadTablePointers tables) {
  extern __shared__ __align__(16) int list[];  // samples of the action
  __shared__ int count;
  if (state->finite == 0) return;
  const int action = static_cast<int>(blockIdx.x);
  if (threadIdx.x < kWarpSize) {
    int found = 0;
    for (int first = 0; first < gradient.batch; first += kWarpSize) {
      const int b = first + static_cast<int>(threadIdx.x);
      const bool mine = b < gradient.batch && gradient.actions[b] == action;
      const unsigned votes = __ballot_sync(kAllLanes, mine);
      if (mine) list[found + __popc(votes & ((1U << threadIdx.x) - 1))] = b;
      found += __popc(votes);
    }
    if (threadIdx.x == 0) count = found;
  }
  __syncthreads();
  const Constants c = ConstantsOf(rules, *state);
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const int unit =
      static_cast<int>(blockIdx.y) * kWarps + static_cast<int>(threadIdx.x) / kWarpSize;
  if (unit >= s.hidden) return;
  float member_sums = 0;
  for (int k = 0; k < s.members; ++k) {
    const std::ptrdiff_t row =
        ((static_cast<std::ptrdiff_t>(action) * s.members + k) * s.hidden + unit) * s.outputs;
    float row_sum = 0;
    for (int first = lane; first < s.outputs; first += kUnroll * kWarpSize) {
      float p[kUnroll], m[kUnroll], v[kUnroll];
#pragma unroll
      for (int i = 0; i < kUnroll; ++i) {
        const int at = first + i * kWarpSize;
        if (at >= s.outputs) continue;
        p[i] = block.p[row + at];
        m[i] = block.m[row + at];
        v[i] = block.v[row + at];
      }
      float g[kUnroll] = {};
      for (int i = 0; i < count; ++i) {
        const std::ptrdiff_t b = list[i];
        if ((gradient.masks[b] >> k & 1) == 0) continue;
        const float value = __ldg(gradient.hidden + b * s.hidden_total() +
                                  (s.separate_hidden ? k * s.hidden : 0) + unit);
        const float* d_out = gradient.d_out + (b * s.members + k) * s.outputs;
#pragma unroll
        for (int j = 0; j < kUnroll; ++j) {
          const int at = first + j * kWarpSize;
          if (at < s.outputs) g[j] = fmaf(value, __ldg(d_out + at), g[j]);
        }
      }
#pragma unroll
      for (int i = 0; i < kUnroll; ++i) {
        const int at = first + i * kWarpSize;
        if (at >= s.outputs) continue;
        Step<kAdam>(c, g[i] * c.gradient_scale, p[i], m[i], v[i]);
        block.p[row + at] = p[i];
        block.m[row + at] = m[i];
        block.v[row + at] = v[i];
        row_sum += p[i];
      }
    }
    const float mean = WarpSum(row_sum) / static_cast<float>(s.outputs);
    if (lane == 0) {
      const std::ptrdiff_t at =
          (static_cast<std::ptrdiff_t>(k) * s.hidden + unit) * s.actions + action;
      tables.member_weights[at] = mean;
      if (s.separate_hidden) tables.mean_weights[at] = mean / static_cast<float>(s.members);
    }
    member_sums += mean;
  }
  if (lane == 0 && !s.separate_hidden) {
    tables.mean_weights[unit * s.actions + action] = member_sums / static_cast<float>(s.members);
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

void LaunchSquares(const StoredGradient& stored, double* squares, cudaStream_t stream) {
  SquaresKernel<<<kSquareBlocks, kThreads, 0, stream>>>(stored, squares);
  CheckCuda(cudaGetLastError(), "gradient norm");
}

void LaunchFinishStep(const FinishStep& call, cudaStream_t stream) {
  FinishStepKernel<<<1, kThreads, 0, stream>>>(call);
  CheckCuda(cudaGetLastError(), "constants of the step");
}

void LaunchOptimizer(const OptimizerRules& rules, const StoredGradient& stored,
                     const ParameterBlock& parameters, const StepState* state,
                     cudaStream_t stream) {
  constexpr int kMostBlocks = 1056;
  std::size_t size = 0;
  for (const GradientRange& range : stored.ranges) size = std::max(size, range.end - range.begin);
  const int blocks = std::clamp(Pieces(size, kThreads), 1, kMostBlocks);
  const auto kernel = rules.adam ? OptimizerKernel<true> : OptimizerKernel<false>;
  kernel<<<blocks, kThreads, 0, stream>>>(rules, stored, parameters, state);
  CheckCuda(cudaGetLastError(), "optimiser");
}

void LaunchHeadOptimizer(const OptimizerRules& rules, const HeadShape& shape,
                         const HeadGradient& gradient, const ParameterBlock& weights,
                         const StepState* state, const HeadTablePointers& tables,
                         cudaStream_t stream) {
  const dim3 grid(shape.actions, Pieces(shape.hidden, kWarps));
  const auto kernel = rules.adam ? HeadOptimizerKernel<true> : HeadOptimizerKernel<false>;
  kernel<<<grid, kThreads, sizeof(int) * gradient.batch, stream>>>(rules, shape, gradient, weights,
                                                                   state, tables);
  CheckCuda(cudaGetLastError(), "optimiser of the head");
}

}  // namespace uper
