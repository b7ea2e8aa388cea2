#include <cuda_pipeline_primitives.h>

#include <algorithm>

#include "uper/nn/cuda/head_parts.cuh"
#include "uper/nn/cuda/launch.cuh"
#include "uper/nn/cuda/optimizer_kernels.h"
#include "uper/nn/cuda/optimizer_step.cuh"
#include "uper/nn/cuda/reductions.cuh"

// The step on the head's weights. The weights of some hidden units of one (action, member) are one
// piece of memory, which a block goes through in passes: a thread takes kWidth neighbours in each.
// A pass is so many whole rows of outputs that a thread meets the same outputs every time: it holds
// their derivatives in registers. The weights come through shared memory, some passes ahead; every
// thread fetches what it needs itself.

namespace uper {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / kWarpSize;
constexpr int kBlocksPerProcessor = 2;
constexpr int kUnits = kHeadStepUnits;  // of a piece
constexpr int kPasses = 4;              // whose weights are on their way, or not summed yet

struct HeadStep {
  StepRules rules;
  StepKind kind = StepKind::kPlain;
  HeadShape shape;
  HeadGradient gradient;
  ParameterStep weights;
  const StepState* state = nullptr;
  HeadTablePointers tables;
};

// Hidden units of one (action, member).
struct HeadPiece {
  int action, member, first_unit, units;
  int chunk;  // the same units of all members

  __device__ HeadPiece(const HeadShape& s, int index) {
    const int chunks = (s.hidden + kUnits - 1) / kUnits;
    const int block = index / chunks;
    action = block / s.members;
    member = block % s.members;
    first_unit = index % chunks * kUnits;
    units = min(kUnits, s.hidden - first_unit);
    chunk = action * chunks + index % chunks;
  }
};

template <int kWidth>
struct PassShape {
  int units;
  int vectors;  // of kWidth weights

  __device__ explicit PassShape(int outputs) {
    const int groups = max(1, min(kThreads / outputs, kUnits / kWidth));
    units = groups * kWidth;
    vectors = groups * outputs;
  }
};

// A thread's weights of a pass.
template <int kWidth>
struct ThreadPlace {
  int vector;
  int passes;           // in which they are there
  int units[kWidth];    // from the first of the pass on
  int outputs[kWidth];  // of these units

  __device__ ThreadPlace(const PassShape<kWidth>& pass, const HeadPiece& piece, int row, int first)
      : vector(first + static_cast<int>(threadIdx.x)) {
    const int left = piece.units * row / kWidth - vector;  // of the piece
    passes = vector < pass.vectors && left > 0 ? (left + pass.vectors - 1) / pass.vectors : 0;
#pragma unroll
    for (int e = 0; e < kWidth; ++e) {
      units[e] = (vector * kWidth + e) / row;
      outputs[e] = (vector * kWidth + e) % row;
    }
  }
};

template <int kWidth>
struct alignas(kWidth * sizeof(float)) Vector {
  float at[kWidth];
};

// Shared memory of a block.
struct StepMemory {
  float4 p[kPasses][kThreads], m[kPasses][kThreads], v[kPasses][kThreads];
  float new_p[kPasses][4 * kThreads];
  float units[kUnits][kSamples];  // of the first samples; 0 where there is none
  float row_sums[kUnits];         // of new weights
  int samples;                    // that learn
  bool is_last;                   // of the members

  // This thread's part of an array above.
  template <int kWidth>
  __device__ static Vector<kWidth>& Mine(float4 (&pass)[kThreads]) {
    return reinterpret_cast<Vector<kWidth>&>(pass[threadIdx.x]);
  }
};

// Starts to fetch the weights of a pass to place i of the shared memory. at: of the thread's first
// weight in pass 0.
template <int kWidth>
__device__ void StartPass(const ParameterBlock& from, std::ptrdiff_t at,
                          const PassShape<kWidth>& shape, const ThreadPlace<kWidth>& place,
                          int pass, int i, StepMemory& memory) {
  if (pass < place.passes) {
    const std::ptrdiff_t here = at + pass * (shape.vectors * kWidth);
    constexpr std::size_t kBytes = sizeof(Vector<kWidth>);
    __pipeline_memcpy_async(&memory.p[i][threadIdx.x], from.p + here, kBytes);
    __pipeline_memcpy_async(&memory.m[i][threadIdx.x], from.m + here, kBytes);
    __pipeline_memcpy_async(&memory.v[i][threadIdx.x], from.v + here, kBytes);
  }
  __pipeline_commit();
}

// The samples that the piece learns from, and the hidden units of the first ones.
__device__ void FindSamples(const HeadStep& step, const HeadPiece& piece, StepMemory& memory,
                            int* list) {
  const HeadShape& s = step.shape;
  const int samples = ListSamples(step.gradient.batch, list, &memory.samples, [&](int b) {
    return __ldg(step.gradient.actions + b) == piece.action &&
           Learns(step.gradient.masks, b, piece.member);
  });
  const int unit = static_cast<int>(threadIdx.x) % kUnits;
  const float* units = step.gradient.hidden + MemberUnits(s, piece.member) + piece.first_unit;
#pragma unroll
  for (int i = static_cast<int>(threadIdx.x) / kUnits; i < kSamples; i += kThreads / kUnits) {
    memory.units[unit][i] =
        i < samples && unit < piece.units ? __ldg(units + list[i] * s.hidden_total() + unit) : 0.0F;
  }
  if (threadIdx.x < kUnits) memory.row_sums[threadIdx.x] = 0;
  __syncthreads();
}
static_assert(kThreads % kUnits == 0, "a thread brings the same unit of several samples");

// What the gradient of a thread's weights is made of.
template <int kWidth>
struct GradientParts {
  const HeadStep& step;
  const HeadPiece& piece;
  const ThreadPlace<kWidth>& place;
  const StepMemory& memory;
  const int* list;
  int samples;
  float d_out[kSamples][kWidth];  // of the first samples; 0 where there is none

  __device__ int OutputsOf(int sample) const {
    return (list[sample] * step.shape.members + piece.member) * step.shape.outputs;
  }
  __device__ void LoadOutputs() {
#pragma unroll
    for (int i = 0; i < kSamples; ++i) {
      const int row = i < samples ? OutputsOf(i) : 0;
#pragma unroll
      for (int e = 0; e < kWidth; ++e) {
        d_out[i][e] = i < samples ? __ldg(step.gradient.d_out + (row + place.outputs[e])) : 0.0F;
      }
    }
  }
};

// The gradient in the pass that begins with unit `first` of the piece: samples in ascending order.
template <int kWidth>
__device__ Vector<kWidth> GradientOf(const GradientParts<kWidth>& parts, int first) {
  Vector<kWidth> g{};
#pragma unroll
  for (int i = 0; i < kSamples; i += 4) {
    if (i >= parts.samples) return g;
#pragma unroll
    for (int e = 0; e < kWidth; ++e) {
      const float4 units =
          *reinterpret_cast<const float4*>(&parts.memory.units[first + parts.place.units[e]][i]);
      g.at[e] = fmaf(units.x, parts.d_out[i][e], g.at[e]);
      g.at[e] = fmaf(units.y, parts.d_out[i + 1][e], g.at[e]);
      g.at[e] = fmaf(units.z, parts.d_out[i + 2][e], g.at[e]);
      g.at[e] = fmaf(units.w, parts.d_out[i + 3][e], g.at[e]);
    }
  }
#pragma unroll 1
  for (int i = kSamples; i < parts.samples; ++i) {
    const HeadShape& s = parts.step.shape;
    const float* units = parts.step.gradient.hidden + parts.list[i] * s.hidden_total() +
                         MemberUnits(s, parts.piece.member) + parts.piece.first_unit + first;
    const float* d_out = parts.step.gradient.d_out + parts.OutputsOf(i);
#pragma unroll
    for (int e = 0; e < kWidth; ++e) {
      g.at[e] =
          fmaf(__ldg(units + parts.place.units[e]), __ldg(d_out + parts.place.outputs[e]), g.at[e]);
    }
  }
  return g;
}

// For what is not read again before the next update: it leaves the cache to the weights.
template <int kWidth>
__device__ void StoreOnce(float* to, const Vector<kWidth>& x) {
  if constexpr (kWidth == 4) {
    __stcs(reinterpret_cast<float4*>(to), make_float4(x.at[0], x.at[1], x.at[2], x.at[3]));
  } else {
    __stcs(to, x.at[0]);
  }
}

// The step on a pass whose weights lie in shared memory, place i. The new ones go to `at`.
template <bool kAdam, int kWidth>
__device__ void StepPass(const HeadStep& step, const StepScales& scales,
                         const Vector<kWidth>& gradient, std::ptrdiff_t at, int i,
                         StepMemory& memory) {
  Vector<kWidth> p = StepMemory::Mine<kWidth>(memory.p[i]);
  Vector<kWidth> m = StepMemory::Mine<kWidth>(memory.m[i]);
  Vector<kWidth> v = StepMemory::Mine<kWidth>(memory.v[i]);
#pragma unroll
  for (int e = 0; e < kWidth; ++e) {
    Step<kAdam>(step.rules, scales, gradient.at[e] * scales.gradient_scale, p.at[e], m.at[e],
                v.at[e]);
  }
  const ParameterBlock& to = step.weights.to;
  *reinterpret_cast<Vector<kWidth>*>(to.p + at) = p;
  StoreOnce<kWidth>(to.m + at, m);
  StoreOnce<kWidth>(to.v + at, v);
  reinterpret_cast<Vector<kWidth>*>(memory.new_p[i])[threadIdx.x] = p;
}

// Adds the new weights of kPasses passes to the sums of their rows, a warp a row at a time. The
// block has the weights from `begin` on of each pass.
template <int kWidth>
__device__ void AddRows(const PassShape<kWidth>& shape, int first_pass, int begin, int row,
                        int units, StepMemory& memory) {
  static_assert(kWarps % kPasses == 0);
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
  const float* weights = memory.new_p[warp % kPasses];
  const int first_unit = (first_pass + warp % kPasses) * shape.units;
  for (int i = warp / kPasses; i < min(shape.units, units - first_unit); i += kWarps / kPasses) {
    const int last = min((i + 1) * row - begin, kThreads * kWidth);
    float sum = 0;
    for (int at = max(i * row - begin, 0) + lane; at < last; at += kWarpSize) sum += weights[at];
    sum = WarpSum(sum);
    if (lane == 0) memory.row_sums[first_unit + i] += sum;
  }
}

template <bool kAdam, int kWidth>
__device__ void StepPiece(const HeadStep& step, const StepScales& scales, const HeadPiece& piece,
                          StepMemory& memory, int* list) {
  const HeadShape& s = step.shape;
  const PassShape<kWidth> shape(s.outputs);
  for (int first = 0; first < shape.vectors; first += kThreads) {
    const ThreadPlace<kWidth> place(shape, piece, s.outputs, first);
    const std::ptrdiff_t at = BlockAt(s, piece.action, piece.member) +
                              piece.first_unit * s.outputs + place.vector * kWidth;
    for (int i = 0; i < kPasses; ++i) StartPass(step.weights.from, at, shape, place, i, i, memory);
    if (first == 0) FindSamples(step, piece, memory, list);
    GradientParts<kWidth> parts{step, piece, place, memory, list, memory.samples, {}};
    parts.LoadOutputs();
#pragma unroll 1
    for (int pass = 0; pass * shape.units < piece.units; pass += kPasses) {
#pragma unroll
      for (int i = 0; i < kPasses; ++i) {
        if (pass + i < place.passes) {
          const Vector<kWidth> g = GradientOf(parts, (pass + i) * shape.units);
          __pipeline_wait_prior(kPasses - 1);
          StepPass<kAdam>(step, scales, g, at + (pass + i) * (shape.vectors * kWidth), i, memory);
        }
        StartPass(step.weights.from, at, shape, place, pass + i + kPasses, i, memory);
      }
      __syncthreads();
      AddRows(shape, pass, first * kWidth, s.outputs, piece.units, memory);
      __syncthreads();
    }
  }
}

// The averages of the piece's rows. The last of the members averages over them all.
__device__ void PutMeans(const HeadStep& step, const HeadPiece& piece, StepMemory& memory) {
  const HeadShape& s = step.shape;
  const int unit = piece.first_unit + static_cast<int>(threadIdx.x);
  const bool mine = static_cast<int>(threadIdx.x) < piece.units;
  const auto member_mean = [&](int member) {
    return step.tables.member_weights + (member * s.actions + piece.action) * s.hidden + unit;
  };
  const float mean = mine ? memory.row_sums[threadIdx.x] / static_cast<float>(s.outputs) : 0.0F;
  if (mine) *member_mean(piece.member) = mean;
  const float share = static_cast<float>(s.members);
  if (s.separate_hidden) {
    if (!mine) return;
    step.tables.mean_weights[piece.action * s.hidden_total() + piece.member * s.hidden + unit] =
        mean / share;
    return;
  }
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    const unsigned last = s.members - 1;  // after it the count starts again
    memory.is_last = atomicInc(step.tables.members_done + piece.chunk, last) == last;
  }
  __syncthreads();
  if (!memory.is_last || !mine) return;
  __threadfence();
  float sum = 0;
  for (int k = 0; k < s.members; ++k) sum += __ldcg(member_mean(k));
  step.tables.mean_weights[piece.action * s.hidden + unit] = sum / share;
}

template <bool kAdam, int kWidth>
__global__ void __launch_bounds__(kThreads, kBlocksPerProcessor)
    HeadOptimizerKernel(const __grid_constant__ HeadStep step) {
  extern __shared__ __align__(16) unsigned char bytes[];
  StepMemory& memory = *reinterpret_cast<StepMemory*>(bytes);
  int* list = reinterpret_cast<int*>(&memory + 1);  // of samples
  if (!IsDue(step.kind, *step.state)) return;
  const StepScales scales = StepScalesOf(step.kind, *step.state);
  const int pieces = step.shape.members * HeadStepChunks(step.shape);
  for (int i = static_cast<int>(blockIdx.x); i < pieces; i += static_cast<int>(gridDim.x)) {
    const HeadPiece piece(step.shape, i);
    StepPiece<kAdam, kWidth>(step, scales, piece, memory, list);
    PutMeans(step, piece, memory);
    __syncthreads();
  }
}

bool IsAligned(const ParameterBlock& block) {
  const auto bits = reinterpret_cast<std::uintptr_t>(block.p) |
                    reinterpret_cast<std::uintptr_t>(block.m) |
                    reinterpret_cast<std::uintptr_t>(block.v);
  return bits % (4 * sizeof(float)) == 0;
}

}  // namespace

void LaunchHeadOptimizer(const OptimizerRules& rules, StepKind kind, const HeadShape& shape,
                         const HeadGradient& gradient, const ParameterStep& weights,
                         const StepState* state, const HeadTablePointers& tables,
                         cudaStream_t stream) {
  int multiprocessors = 0;  // results do not depend on it
  CheckCuda(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0),
            "cudaDeviceGetAttribute");
  const bool vectors = shape.hidden % 4 == 0 && IsAligned(weights.from) && IsAligned(weights.to);
  auto* kernel = rules.adam ? HeadOptimizerKernel<true, 1> : HeadOptimizerKernel<false, 1>;
  if (vectors) kernel = rules.adam ? HeadOptimizerKernel<true, 4> : HeadOptimizerKernel<false, 4>;
  // Blocks that end soon make room for more urgent kernels; a step that is hardly ever taken starts
  // few.
  const int pieces = shape.members * HeadStepChunks(shape);
  const int blocks =
      kind == StepKind::kAhead ? pieces : std::min(pieces, kBlocksPerProcessor * multiprocessors);
  LaunchKernel("optimiser of the head", kernel,
               {.grid = static_cast<unsigned>(blocks),
                .block = kThreads,
                .shared_bytes = sizeof(StepMemory) + sizeof(int) * gradient.batch,
                .stream = stream},
               HeadStep{StepRules(rules), kind, shape, gradient, weights, state, tables});
}

}  // namespace uper
