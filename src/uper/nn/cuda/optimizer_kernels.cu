#include <algorithm>

#include "uper/nn/cuda/copy.cuh"
#include "uper/nn/cuda/launch.cuh"
#include "uper/nn/cuda/optimizer_kernels.h"
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

__device__ bool IsDue(StepKind kind, const StepState& state) {
  switch (kind) {
    case StepKind::kAhead:
      return true;
    case StepKind::kAgain:
      return state.finite != 0 && state.gradient_scale < 1;
    case StepKind::kPlain:
      return state.finite != 0;
  }
  return false;
}

// The constants in the precision that the loops use.
struct Constants {
  float decay1, other1, decay2, other2, epsilon;
  float gradient_scale, rate, root_scale;
  bool inside_root;
};
__device__ Constants ConstantsOf(const OptimizerRules& rules, StepKind kind,
                                 const StepState& state) {
  return {.decay1 = static_cast<float>(rules.decay1),
          .other1 = static_cast<float>(1 - rules.decay1),
          .decay2 = static_cast<float>(rules.decay2),
          .other2 = static_cast<float>(1 - rules.decay2),
          .epsilon = static_cast<float>(rules.epsilon),
          .gradient_scale = kind == StepKind::kAhead ? 1.0F : state.gradient_scale,
          .rate = state.rate,
          .root_scale = state.root_scale,
          .inside_root = rules.inside_root};
}

// Within an ulp or two of the rounded results, and several times cheaper: the optimiser must keep
// up with memory.
__device__ float FastRoot(float x) {
  float root;
  asm("sqrt.approx.f32 %0, %1;" : "=f"(root) : "f"(x));
  return root;
}

// One parameter; g is already scaled.
template <bool kAdam>
__device__ void Step(const Constants& c, float g, float& p, float& m, float& v) {
  m = fmaf(c.decay1, m, c.other1 * g);
  v = fmaf(c.decay2, v, c.other2 * (g * g));
  if (kAdam) {
    p -= __fdividef(c.rate * m, fmaf(FastRoot(v), c.root_scale, c.epsilon));
  } else {
    const float variance = fmaxf(0.0F, fmaf(-m, m, v));
    const float divisor =
        c.inside_root ? FastRoot(variance + c.epsilon) : FastRoot(variance) + c.epsilon;
    p -= __fdividef(c.rate * g, divisor);
  }
}

template <bool kAdam>
__device__ float StepAt(const Constants& c, const float* gradient, const ParameterStep& block,
                        std::size_t i) {
  float p = block.from.p[i];
  float m = block.from.m[i];
  float v = block.from.v[i];
  Step<kAdam>(c, gradient[i] * c.gradient_scale, p, m, v);
  block.to.p[i] = p;
  block.to.m[i] = m;
  block.to.v[i] = v;
  return p;
}

// The share of one block of many.
template <bool kAdam>
__device__ void StepRange(const Constants& c, const float* gradient, const ParameterStep& block,
                          const GradientRange& range, unsigned index, unsigned count) {
  for (std::size_t i = range.begin + std::size_t{index} * kThreads + threadIdx.x; i < range.end;
       i += std::size_t{count} * kThreads) {
    StepAt<kAdam>(c, gradient, block, i);
  }
}

template <bool kAdam>
__global__ void __launch_bounds__(kThreads)
    OptimizerKernel(OptimizerRules rules, const float* gradient, GradientRange range,
                    ParameterStep block, const StepState* state) {
  StepRange<kAdam>(ConstantsOf(rules, StepKind::kAhead, *state), gradient, block, range, blockIdx.x,
                   gridDim.x);
}

// The bias of one action and its averages; a warp a member at a time.
template <bool kAdam>
__device__ void StepBias(const Constants& c, const FinishStep& call, int action, float* means) {
  const HeadShape& s = call.shape;
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  for (int k = static_cast<int>(threadIdx.x) / kWarpSize; k < s.members;
       k += kThreads / kWarpSize) {
    float sum = 0;
    const std::size_t row = call.bias + (std::size_t{1} * action * s.members + k) * s.outputs;
    for (int m = lane; m < s.outputs; m += kWarpSize) {
      sum += StepAt<kAdam>(c, call.gradient, call.parameters, row + m);
    }
    sum = WarpSum(sum) / static_cast<float>(s.outputs);
    if (lane > 0) continue;
    means[k] = sum;
    call.tables.member_bias[k * s.actions + action] = sum;
  }
  __syncthreads();
  if (threadIdx.x > 0) return;
  float sum = 0;
  for (int k = 0; k < s.members; ++k) sum += means[k];
  call.tables.mean_bias[action] = sum / static_cast<float>(s.members);
}

// One bias for all outputs: one thread.
template <bool kAdam>
__device__ void StepSharedBias(const Constants& c, const FinishStep& call) {
  const float bias = StepAt<kAdam>(c, call.gradient, call.parameters, call.bias);
  for (int i = 0; i < call.shape.members * call.shape.actions; ++i) {
    call.tables.member_bias[i] = bias;
  }
  for (int a = 0; a < call.shape.actions; ++a) call.tables.mean_bias[a] = bias;
}

// Every block finds out by itself how the step is taken. The first ones do the bias.
template <bool kAdam>
__global__ void __launch_bounds__(kThreads)
    FinishStepKernel(const __grid_constant__ FinishStep call, int bias_blocks) {
  extern __shared__ __align__(16) float means[];  // [member]
  __shared__ double scratch[2][kWarpSize];
  double squares = 0;
#pragma unroll 4
  for (int i = static_cast<int>(threadIdx.x); i < call.square_count; i += kThreads) {
    squares += call.squares[i];
  }
  double loss = 0;
  for (int i = static_cast<int>(threadIdx.x); i < call.member_count; i += kThreads) {
    loss += call.members[i].share;
  }
  squares = BlockSum(squares, scratch[0]);
  loss = BlockSum(loss, scratch[1]);
  const OptimizerRules& rules = call.rules;
  const double norm = sqrt(squares);
  const bool finite = isfinite(loss) && isfinite(norm);
  const bool clipped = rules.max_global_norm > 0 && norm >= rules.max_global_norm;
  const float scale = clipped ? static_cast<float>(rules.max_global_norm / norm) : 1.0F;
  Constants c = ConstantsOf(rules, StepKind::kPlain, *call.state);  // but for the scale
  c.gradient_scale = scale;
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    StepState& state = *call.state;
    state.loss = loss;
    state.gradient_norm = norm;
    state.finite = finite ? 1 : 0;
    if (finite) state.gradient_scale = scale;
    if (finite) ++state.updates;
    *call.report = state;
  }
  if (!finite) return;
  if (static_cast<int>(blockIdx.x) < bias_blocks) {
    if (!call.shape.shared_bias) {
      StepBias<kAdam>(c, call, static_cast<int>(blockIdx.x), means);
    } else if (threadIdx.x == 0) {
      StepSharedBias<kAdam>(c, call);
    }
    return;
  }
  const unsigned index = blockIdx.x - bias_blocks;
  const unsigned count = gridDim.x - bias_blocks;
  StepRange<kAdam>(c, call.gradient, call.parameters, call.plain, index, count);
  if (scale < 1) StepRange<kAdam>(c, call.gradient, call.parameters, call.ahead, index, count);
}

constexpr int kHeadThreads = 512;
constexpr int kHeadWarps = kHeadThreads / kWarpSize;
constexpr int kUnroll = 7;                   // outputs of a lane: 201 are one piece of a row
constexpr int kPiece = kUnroll * kWarpSize;  // outputs of a warp at a time
constexpr int kPieceFloats = kPiece + 8;     // with room for StartCopy()
constexpr int kPieceStages = 2;              // pieces on their way or at work
constexpr int kWarpFloats = kPieceStages * 3 * kPieceFloats;  // p, m and v

// What StepHeadRow() works on beside its row.
struct HeadRows {
  HeadShape shape;
  HeadGradient gradient;
  const int* actions;          // [batch], in shared memory
  const std::uint64_t* masks;  // likewise
};

// The gradient of row (action, k, unit) at outputs first, first + 32, ...: samples in ascending
// order, the whole warp at once.
__device__ void HeadRowGradient(const HeadRows& rows, int action, int k, int unit, int first,
                                float (&g)[kUnroll]) {
  const HeadShape& s = rows.shape;
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  for (int group = 0; group < rows.gradient.batch; group += kWarpSize) {
    const int mine = group + lane;
    const bool learns = mine < rows.gradient.batch && rows.actions[mine] == action &&
                        (rows.masks[mine] >> k & 1) != 0;
    for (unsigned left = __ballot_sync(kAllLanes, learns); left != 0; left &= left - 1) {
      const std::ptrdiff_t b = group + __ffs(static_cast<int>(left)) - 1;
      const float value = __ldg(rows.gradient.hidden + b * s.hidden_total() +
                                (s.separate_hidden ? k * s.hidden : 0) + unit);
      const float* d_out = rows.gradient.d_out + (b * s.members + k) * s.outputs;
#pragma unroll
      for (int i = 0; i < kUnroll; ++i) {
        const int at = first + i * kWarpSize;
        if (at < s.outputs) g[i] = fmaf(value, __ldg(d_out + at), g[i]);
      }
    }
  }
}

// A piece of a row: all outputs of (action, k, unit) if they are few enough.
struct HeadPiece {
  int action, k, unit;
  int row;    // among the block's
  int begin;  // of the outputs
  int count;
};

// p, m and v of a piece in shared memory, [p, m, v][kPieceFloats], entries from `shift` on.
struct PieceBuffer {
  float* data;
  int shift;
};

__device__ std::ptrdiff_t PieceAt(const HeadShape& s, const HeadPiece& piece) {
  return ((static_cast<std::ptrdiff_t>(piece.action) * s.members + piece.k) * s.hidden +
          piece.unit) *
             s.outputs +
         piece.begin;
}

// Starts to copy a piece; the warp's lanes share the work.
__device__ void StartPiece(const HeadShape& s, const ParameterBlock& from, const HeadPiece& piece,
                           PieceBuffer& buffer) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const std::ptrdiff_t at = PieceAt(s, piece);
  buffer.shift = StartCopy(buffer.data, from.p + at, piece.count, lane, kWarpSize);
  StartCopy(buffer.data + kPieceFloats, from.m + at, piece.count, lane, kWarpSize);
  StartCopy(buffer.data + 2 * kPieceFloats, from.v + at, piece.count, lane, kWarpSize);
}

// Steps a piece that has arrived; returns this lane's share of the sum of the new weights.
template <bool kAdam>
__device__ float StepPiece(const Constants& c, const HeadRows& rows, const ParameterBlock& to,
                           const HeadPiece& piece, const PieceBuffer& buffer,
                           const float (&g)[kUnroll]) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const std::ptrdiff_t at = PieceAt(rows.shape, piece) + lane;
  const float* arrived = buffer.data + buffer.shift + lane;
  float sum = 0;
#pragma unroll
  for (int i = 0; i < kUnroll; ++i) {
    if (lane + i * kWarpSize >= piece.count) continue;
    float p = arrived[i * kWarpSize];
    float m = arrived[kPieceFloats + i * kWarpSize];
    float v = arrived[2 * kPieceFloats + i * kWarpSize];
    Step<kAdam>(c, g[i] * c.gradient_scale, p, m, v);
    (to.p + at)[i * kWarpSize] = p;
    (to.m + at)[i * kWarpSize] = m;
    (to.v + at)[i * kWarpSize] = v;
    sum += p;
  }
  return sum;
}

// The first (action, hidden unit) pair of a block.
__host__ __device__ int FirstPair(const HeadShape& s, int block, int blocks) {
  return static_cast<int>(static_cast<long long>(s.actions) * s.hidden * block / blocks);
}

// The i-th piece of a warp; rows go to the warps in turn.
__device__ HeadPiece PieceOf(const HeadShape& s, int first_pair, int warp, int i) {
  const int pieces = (s.outputs + kPiece - 1) / kPiece;  // of a row
  const int row = warp + i / pieces * kHeadWarps;
  const int pair = first_pair + row / s.members;
  const int begin = i % pieces * kPiece;
  return {.action = pair / s.hidden,
          .k = row % s.members,
          .unit = pair % s.hidden,
          .row = row,
          .begin = begin,
          .count = min(kPiece, s.outputs - begin)};
}

// Writes the average of a row of new weights.
__device__ void PutRowMean(const HeadShape& s, const HeadTablePointers& tables,
                           const HeadPiece& piece, float mean) {
  tables
      .member_weights[(static_cast<std::ptrdiff_t>(piece.k) * s.actions + piece.action) * s.hidden +
                      piece.unit] = mean;
  if (!s.separate_hidden) return;
  tables.mean_weights[static_cast<std::ptrdiff_t>(piece.action) * s.hidden_total() +
                      piece.k * s.hidden + piece.unit] = mean / static_cast<float>(s.members);
}

// A block takes some (action, hidden unit) pairs; its warps share their rows, one a member, and go
// along the outputs. While a warp works on one piece of a row the next is on its way.
template <bool kAdam>
__global__ void __launch_bounds__(kHeadThreads, 2)
    HeadOptimizerKernel(OptimizerRules rules, StepKind kind, HeadShape s,
                        const __grid_constant__ HeadGradient gradient,
                        const __grid_constant__ ParameterStep block, const StepState* state,
                        HeadTablePointers tables) {
  extern __shared__ __align__(16) float memory[];
  if (!IsDue(kind, *state)) return;
  // [warp][stage][p, m, v][kPieceFloats], masks [batch], actions [batch], row_means [pair, member]
  auto* masks = reinterpret_cast<std::uint64_t*>(memory + kHeadWarps * kWarpFloats);
  auto* actions = reinterpret_cast<int*>(masks + gradient.batch);
  auto* row_means = reinterpret_cast<float*>(actions + gradient.batch);
  for (int b = static_cast<int>(threadIdx.x); b < gradient.batch; b += kHeadThreads) {
    masks[b] = gradient.masks[b];
    actions[b] = gradient.actions[b];
  }
  __syncthreads();
  const Constants c = ConstantsOf(rules, kind, *state);
  const HeadRows rows{s, gradient, actions, masks};
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
  const int first_pair = FirstPair(s, blockIdx.x, gridDim.x);
  const int pairs = FirstPair(s, blockIdx.x + 1, gridDim.x) - first_pair;
  const int warp_rows = (pairs * s.members - warp + kHeadWarps - 1) / kHeadWarps;
  const int pieces = warp_rows * ((s.outputs + kPiece - 1) / kPiece);
  PieceBuffer buffers[kPieceStages];
#pragma unroll
  for (int stage = 0; stage < kPieceStages; ++stage) {
    buffers[stage].data = memory + warp * kWarpFloats + stage * 3 * kPieceFloats;
  }
  float row_sum = 0;
  if (pieces > 0) StartPiece(s, block.from, PieceOf(s, first_pair, warp, 0), buffers[0]);
  __pipeline_commit();
  // Two at a time, so that the buffers are known when this is compiled.
  for (int first = 0; first < pieces; first += kPieceStages) {
#pragma unroll
    for (int stage = 0; stage < kPieceStages; ++stage) {
      const int i = first + stage;
      if (i >= pieces) break;
      if (i + 1 < pieces) {
        StartPiece(s, block.from, PieceOf(s, first_pair, warp, i + 1),
                   buffers[(stage + 1) % kPieceStages]);
      }
      __pipeline_commit();
      const HeadPiece piece = PieceOf(s, first_pair, warp, i);
      float g[kUnroll] = {};
      HeadRowGradient(rows, piece.action, piece.k, piece.unit, piece.begin + lane, g);
      __pipeline_wait_prior(1);
      __syncwarp();
      row_sum += StepPiece<kAdam>(c, rows, block.to, piece, buffers[stage], g);
      __syncwarp();  // the buffer may be filled again
      if (piece.begin + piece.count < s.outputs) continue;
      const float mean = WarpSum(row_sum) / static_cast<float>(s.outputs);
      row_sum = 0;
      if (lane > 0) continue;
      row_means[piece.row] = mean;
      PutRowMean(s, tables, piece, mean);
    }
  }
  __syncthreads();
  if (s.separate_hidden) return;
  for (int pair = static_cast<int>(threadIdx.x); pair < pairs; pair += kHeadThreads) {
    float sum = 0;
    for (int k = 0; k < s.members; ++k) sum += row_means[pair * s.members + k];
    tables.mean_weights[first_pair + pair] = sum / static_cast<float>(s.members);
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
  constexpr int kMostBlocks = 264;
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
               call, bias_blocks);
}

void LaunchBeginStep(const OptimizerRules& rules, StepState* state, cudaStream_t stream) {
  BeginStepKernel<<<1, 1, 0, stream>>>(rules, state);
  CheckCuda(cudaGetLastError(), "constants of the step");
}

void LaunchOptimizer(const OptimizerRules& rules, const float* gradient, const GradientRange& range,
                     const ParameterStep& parameters, const StepState* state, cudaStream_t stream) {
  constexpr int kMostBlocks = 528;
  const int blocks = std::clamp(Pieces(range.end - range.begin, kThreads), 1, kMostBlocks);
  LaunchKernel("optimiser", rules.adam ? OptimizerKernel<true> : OptimizerKernel<false>,
               {.grid = static_cast<unsigned>(blocks), .block = kThreads, .stream = stream}, rules,
               gradient, range, parameters, state);
}

void LaunchHeadOptimizer(const OptimizerRules& rules, StepKind kind, const HeadShape& shape,
                         const HeadGradient& gradient, const ParameterStep& weights,
                         const StepState* state, const HeadTablePointers& tables,
                         cudaStream_t stream) {
  int multiprocessors = 0;  // results do not depend on it
  CheckCuda(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0),
            "cudaDeviceGetAttribute");
  const int items = shape.actions * shape.hidden;
  const int blocks = std::min(multiprocessors, Pieces(items, kHeadWarps));
  const std::size_t bytes = sizeof(float) * kHeadWarps * kWarpFloats +
                            (sizeof(std::uint64_t) + sizeof(int)) * gradient.batch +
                            sizeof(float) * (items / blocks + 1) * shape.members;
  const auto kernel = rules.adam ? HeadOptimizerKernel<true> : HeadOptimizerKernel<false>;
  LaunchKernel("optimiser of the head", kernel,
               {.grid = static_cast<unsigned>(blocks),
                .block = kHeadThreads,
                .shared_bytes = bytes,
                .stream = stream},
               rules, kind, shape, gradient, weights, state, tables);
}

}  // namespace uper
