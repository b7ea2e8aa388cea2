#include <algorithm>

#include "uper/base/check.h"
#include "uper/nn/cuda/copy.cuh"
#include "uper/nn/cuda/cuda_error.h"
#include "uper/nn/cuda/head_kernels.h"
#include "uper/nn/cuda/launch.cuh"
#include "uper/nn/cuda/reductions.cuh"

namespace uper {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / kWarpSize;
constexpr int kSamples = 8;  // of one action that a thread works on at a time

int Pieces(int total, int piece) { return (total + piece - 1) / piece; }

__device__ std::ptrdiff_t BlockAt(const HeadShape& s, int action, int member) {
  return (static_cast<std::ptrdiff_t>(action) * s.members + member) * s.hidden * s.outputs;
}

__device__ int MemberUnits(const HeadShape& s, int member) {
  return s.separate_hidden ? member * s.hidden : 0;
}

__device__ float BiasAt(const HeadShape& s, const float* bias, int action, int member, int m) {
  return __ldg(bias + (s.shared_bias ? 0 : (action * s.members + member) * s.outputs + m));
}

__device__ bool Learns(const std::uint64_t* masks, int b, int member) {
  return (__ldg(reinterpret_cast<const unsigned long long*>(masks) + b) >> member & 1) != 0;
}

// list: the samples that `belongs` accepts, ascending; returns how many. The first warp works.
template <typename Belongs>
__device__ int ListSamples(int batch, int* list, int* count, const Belongs& belongs) {
  if (threadIdx.x < kWarpSize) {
    int found = 0;
    for (int first = 0; first < batch; first += kWarpSize) {
      const int b = first + static_cast<int>(threadIdx.x);
      const bool mine = b < batch && belongs(b);
      const unsigned votes = __ballot_sync(kAllLanes, mine);
      if (mine) list[found + __popc(votes & ((1U << threadIdx.x) - 1))] = b;
      found += __popc(votes);
    }
    if (threadIdx.x == 0) *count = found;
  }
  __syncthreads();
  return *count;
}

struct Selections {
  HeadSelection list[kMaxSelections];
};

// Blocks that share the samples of one (action, member).
constexpr int kSampleBlocks = 2;
// Hidden units whose weights lie in shared memory at a time.
constexpr int kSliceUnits = 64;

// Shared memory of SelectKernel.
struct SelectMemory {
  int width;  // outputs of one block
  int weights_floats;
  int group_floats;

  static SelectMemory Of(const HeadShape& s) {
    const int width = std::min(s.outputs, kThreads);
    const int units = std::min(kSliceUnits, Pieces(s.hidden, kHeadParts));
    // Room for StartCopy(), and whole groups of four.
    return {.width = width,
            .weights_floats = Pieces(units * width + 6, 4) * 4,
            .group_floats = kThreads / width > 1 ? kThreads * kSamples : 0};
  }
  std::size_t bytes(int batch) const {
    return sizeof(float) * (weights_floats + kSliceUnits * kSamples + group_floats) +
           sizeof(int) * batch;
  }
};

// Starts to copy the weights [unit][width] of some hidden units, `columns` of each row; entry 0
// arrives at the offset that is returned. Whole rows lie behind each other and are copied at once.
__device__ int StartWeights(const HeadShape& s, const float* w, int units, int columns, int width,
                            float* to) {
  const int thread = static_cast<int>(threadIdx.x);
  if (width == s.outputs) return StartCopy(to, w, units * width, thread, kThreads);
  for (int i = thread; i < units * width; i += kThreads) {
    if (i % width >= columns) continue;
    const std::ptrdiff_t row = i / width;
    __pipeline_memcpy_async(to + i, w + row * s.outputs + i % width, sizeof(float));
  }
  return 0;
}

// sums[i] += weight * units[i] for the samples of one chunk.
__device__ void AddProducts(float weight, const float* units, float (&sums)[kSamples]) {
  const float4 low = *reinterpret_cast<const float4*>(units);
  const float4 high = *reinterpret_cast<const float4*>(units + 4);
  sums[0] = fmaf(weight, low.x, sums[0]);
  sums[1] = fmaf(weight, low.y, sums[1]);
  sums[2] = fmaf(weight, low.z, sums[2]);
  sums[3] = fmaf(weight, low.w, sums[3]);
  sums[4] = fmaf(weight, high.x, sums[4]);
  sums[5] = fmaf(weight, high.y, sums[5]);
  sums[6] = fmaf(weight, high.z, sums[6]);
  sums[7] = fmaf(weight, high.w, sums[7]);
}

// Grid: action x member, part x tile of outputs, selection x share of the samples. The threads are
// groups of `width` outputs; group g takes every groups-th hidden unit.
__global__ void __launch_bounds__(kThreads)
    SelectKernel(HeadShape s, int batch, const __grid_constant__ Selections selections,
                 SelectMemory layout) {
  extern __shared__ __align__(16) float memory[];
  __shared__ int count;
  const HeadSelection& selection = selections.list[blockIdx.z / kSampleBlocks];
  const int width = layout.width;
  const int action = static_cast<int>(blockIdx.x) / s.members;
  const int member = static_cast<int>(blockIdx.x) % s.members;
  const int part = static_cast<int>(blockIdx.y) % kHeadParts;
  const int first_output = static_cast<int>(blockIdx.y) / kHeadParts * width;
  const int part_size = (s.hidden + kHeadParts - 1) / kHeadParts;
  float* weights = memory;                             // [hidden unit][width]
  float* units = weights + layout.weights_floats;      // [hidden unit][kSamples]
  float* group_sums = units + kSliceUnits * kSamples;  // [group][kSamples][width]
  int* list = reinterpret_cast<int*>(group_sums + layout.group_floats);
  const bool all = selection.actions == nullptr;
  AwaitPredecessor();
  const int samples = ListSamples(batch, list, &count, [&](int b) {
    return all || __ldg(selection.actions + b * selection.sample_stride +
                        member * selection.member_stride) == action;
  });

  const int begin = part * part_size;
  const int end = min(begin + part_size, s.hidden);
  const int groups = kThreads / width;
  const int group = static_cast<int>(threadIdx.x) / width;
  const int column = static_cast<int>(threadIdx.x) % width;
  const int output = first_output + column;
  const bool active = group < groups && output < s.outputs;
  const float* w = selection.w + BlockAt(s, action, member) + first_output;
  const int rows = all ? s.actions * s.members : s.members;
  const int row = all ? static_cast<int>(blockIdx.x) : member;
  int shift = 0;
  const int first_chunk = static_cast<int>(blockIdx.z) % kSampleBlocks * kSamples;
  for (int first = first_chunk; first < samples; first += kSampleBlocks * kSamples) {
    float sums[kSamples] = {};
    for (int slice = begin; slice < end; slice += kSliceUnits) {
      const int slice_units = min(kSliceUnits, end - slice);
      __syncthreads();
      if (first == first_chunk || end - begin > kSliceUnits) {  // else they are there already
        shift = StartWeights(s, w + static_cast<std::ptrdiff_t>(slice) * s.outputs, slice_units,
                             min(width, s.outputs - first_output), width, weights);
        __pipeline_commit();
      }
      for (int i = static_cast<int>(threadIdx.x); i < slice_units * kSamples; i += kThreads) {
        const int sample = first + i / slice_units;
        const int unit = i % slice_units;
        units[unit * kSamples + i / slice_units] =
            sample < samples ? __ldg(selection.hidden +
                                     static_cast<std::ptrdiff_t>(list[sample]) * s.hidden_total() +
                                     MemberUnits(s, member) + slice + unit)
                             : 0.0F;
      }
      __pipeline_wait_prior(0);
      __syncthreads();
      if (!active) continue;
#pragma unroll 8
      for (int unit = group; unit < slice_units; unit += groups) {
        AddProducts(weights[shift + unit * width + column], units + unit * kSamples, sums);
      }
    }
    if (groups > 1 && group < groups) {
#pragma unroll
      for (int i = 0; i < kSamples; ++i) {
        group_sums[(group * kSamples + i) * width + column] = sums[i];
      }
    }
    __syncthreads();
    if (group > 0 || !active) continue;
#pragma unroll
    for (int i = 0; i < kSamples; ++i) {
      if (first + i >= samples) break;
      float sum = sums[i];
      for (int g = 1; g < groups; ++g) sum += group_sums[(g * kSamples + i) * width + column];
      const std::ptrdiff_t at =
          (static_cast<std::ptrdiff_t>(part) * batch + list[first + i]) * rows;
      selection.parts[(at + row) * s.outputs + output] = sum;
    }
  }
}

constexpr int kUnitsPerLane = 16;  // in registers at a time

// Grid: member, sample. A warp an action at a time, its lanes go along the hidden units.
__global__ void __launch_bounds__(kThreads) MeansKernel(const __grid_constant__ HeadMeans means) {
  extern __shared__ __align__(16) float row_values[];  // [action]
  const int member = static_cast<int>(blockIdx.x);
  const std::ptrdiff_t b = blockIdx.y;
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
  AwaitPredecessor();
  const float* units = means.units + b * means.unit_stride + member * means.member_step;
  for (int action = warp; action < means.actions; action += kWarps) {
    const std::ptrdiff_t row = static_cast<std::ptrdiff_t>(member) * means.actions + action;
    const float* w = means.weights + row * means.hidden;
    float sum = 0;
    for (int first = lane; first < means.hidden; first += kUnitsPerLane * kWarpSize) {
      float weight[kUnitsPerLane], unit[kUnitsPerLane];
#pragma unroll
      for (int i = 0; i < kUnitsPerLane; ++i) {
        const int at = first + i * kWarpSize;
        weight[i] = at < means.hidden ? __ldg(w + at) : 0.0F;
        unit[i] = at < means.hidden ? __ldg(units + at) : 0.0F;
      }
#pragma unroll
      for (int i = 0; i < kUnitsPerLane; ++i) sum = fmaf(weight[i], unit[i], sum);
    }
    sum = WarpSum(sum) + __ldg(means.bias + row);
    if (lane > 0) continue;
    row_values[action] = sum;
    means.values[(b * means.members + member) * means.actions + action] = sum;
  }
  if (means.chosen == nullptr) return;
  __syncthreads();
  if (threadIdx.x > 0) return;
  int best = 0;
  for (int a = 1; a < means.actions; ++a) {
    if (row_values[a] > row_values[best]) best = a;
  }
  means.chosen[b * means.members + member] = best;
}

// A warp a (sample, action, member).
__global__ void __launch_bounds__(kThreads)
    AtomValuesKernel(HeadShape s, const __grid_constant__ AtomValues call) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const int row =
      (static_cast<int>(blockIdx.x) * kThreads + static_cast<int>(threadIdx.x)) / kWarpSize;
  const int blocks = s.actions * s.members;
  if (row >= call.batch * blocks) return;
  const int action = row % blocks / s.members;
  const int member = row % s.members;
  const std::ptrdiff_t part_step = static_cast<std::ptrdiff_t>(call.batch) * blocks * s.outputs;
  const auto logit = [&](int j) {
    float sum = BiasAt(s, call.bias, action, member, j);
    for (int part = 0; part < kHeadParts; ++part) {
      sum += call.parts[part * part_step + static_cast<std::ptrdiff_t>(row) * s.outputs + j];
    }
    return static_cast<double>(sum);
  };
  double largest = logit(0);
  for (int j = lane; j < s.outputs; j += kWarpSize) largest = fmax(largest, logit(j));
  largest = WarpMax(largest);
  double mass_sum = 0;
  double weighted = 0;
  for (int j = lane; j < s.outputs; j += kWarpSize) {
    const double mass = exp(logit(j) - largest);
    mass_sum += mass;
    weighted += mass * (call.low + call.spacing * j);
  }
  mass_sum = WarpSum(mass_sum);
  weighted = WarpSum(weighted);
  if (lane > 0) return;
  const int b = row / blocks;
  call.values[(b * s.members + member) * s.actions + action] =
      static_cast<float>(weighted / mass_sum);
}

// A block a sample, a thread a member.
__global__ void ChooseKernel(HeadShape s, bool ensemble, const float* values, int* chosen) {
  const int b = static_cast<int>(blockIdx.x);
  const int member = static_cast<int>(threadIdx.x);
  const float* rows = values + static_cast<std::ptrdiff_t>(b) * s.members * s.actions;
  const auto value = [&](int a) {
    if (!ensemble) return rows[member * s.actions + a];
    float sum = rows[a];
    for (int k = 1; k < s.members; ++k) sum += rows[k * s.actions + a];
    return sum;
  };
  int best = 0;
  float best_value = value(0);
  for (int a = 1; a < s.actions; ++a) {
    const float candidate = value(a);
    if (!(candidate > best_value)) continue;
    best = a;
    best_value = candidate;
  }
  chosen[b * s.members + member] = best;
}

__global__ void MemberMeanKernel(HeadShape s, int batch, const float* values, float* q) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= batch * s.actions) return;
  const int b = i / s.actions;
  float sum = 0;
  for (int k = 0; k < s.members; ++k)
    sum += values[(b * s.members + k) * s.actions + i % s.actions];
  q[i] = sum / static_cast<float>(s.members);
}

constexpr int kRows = kWarpSize;              // hidden units of one block of BackwardHiddenKernel
constexpr int kTileOutputs = 256;             // outputs in shared memory at a time
constexpr int kRowStride = kTileOutputs + 1;  // odd: lanes of different rows use different banks

// Grid: action x member, rows of hidden units. Lanes are hidden units, warps share the outputs.
__global__ void __launch_bounds__(kThreads)
    BackwardHiddenKernel(HeadShape s, const __grid_constant__ HeadGradient gradient, const float* w,
                         float* parts) {
  extern __shared__ __align__(16) float memory[];
  __shared__ int count;
  float* d_tile = memory;                            // [output][kSamples]
  float* w_tile = d_tile + kTileOutputs * kSamples;  // [hidden unit][kRowStride]
  float* warp_sums = w_tile + kRows * kRowStride;    // [warp][kSamples][hidden unit]
  int* list = reinterpret_cast<int*>(warp_sums + kWarps * kSamples * kRows);
  AwaitPredecessor();
  const int action = static_cast<int>(blockIdx.x) / s.members;
  const int member = static_cast<int>(blockIdx.x) % s.members;
  const int samples = ListSamples(gradient.batch, list, &count, [&](int b) {
    return __ldg(gradient.actions + b) == action && Learns(gradient.masks, b, member);
  });
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
  const int first_unit = static_cast<int>(blockIdx.y) * kRows;
  const int unit_count = min(kRows, s.hidden - first_unit);
  const float* rows =
      w + BlockAt(s, action, member) + static_cast<std::ptrdiff_t>(first_unit) * s.outputs;
  for (int first = 0; first < samples; first += kSamples) {
    float sums[kSamples] = {};
    for (int tile = 0; tile < s.outputs; tile += kTileOutputs) {
      const int width = min(kTileOutputs, s.outputs - tile);
      __syncthreads();
      if (first == 0 || s.outputs > kTileOutputs) {  // else it is there already
        for (int row = warp; row < unit_count; row += kWarps) {
          for (int j = lane; j < width; j += kWarpSize) {
            __pipeline_memcpy_async(w_tile + row * kRowStride + j,
                                    rows + static_cast<std::ptrdiff_t>(row) * s.outputs + tile + j,
                                    sizeof(float));
          }
        }
        __pipeline_commit();
      }
      for (int i = static_cast<int>(threadIdx.x); i < width * kSamples; i += kThreads) {
        const int sample = first + i / width;
        const int j = i % width;
        d_tile[j * kSamples + i / width] =
            sample < samples
                ? __ldg(gradient.d_out +
                        (static_cast<std::ptrdiff_t>(list[sample]) * s.members + member) *
                            s.outputs +
                        tile + j)
                : 0.0F;
      }
      __pipeline_wait_prior(0);
      __syncthreads();
      const float* row = w_tile + lane * kRowStride;
#pragma unroll 4
      for (int j = warp; j < width; j += kWarps) {
        AddProducts(row[j], d_tile + j * kSamples, sums);
      }
    }
#pragma unroll
    for (int i = 0; i < kSamples; ++i) warp_sums[(warp * kSamples + i) * kRows + lane] = sums[i];
    __syncthreads();
    // A warp a sample.
    if (first + warp < samples && lane < unit_count) {
      float sum = 0;
#pragma unroll
      for (int g = 0; g < kWarps; ++g) sum += warp_sums[(g * kSamples + warp) * kRows + lane];
      const std::ptrdiff_t at =
          static_cast<std::ptrdiff_t>(member) * gradient.batch + list[first + warp];
      parts[at * s.hidden + first_unit + lane] = sum;
    }
  }
}
static_assert(kWarps == kSamples, "a warp adds up a sample");

__global__ void SumHiddenKernel(HeadShape s, const __grid_constant__ HeadGradient gradient,
                                const float* parts, float* d_hidden) {
  AwaitPredecessor();
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= gradient.batch * s.hidden_total()) return;
  const int b = i / s.hidden_total();
  const int unit = i % s.hidden_total() % s.hidden;
  const int first = s.separate_hidden ? i % s.hidden_total() / s.hidden : 0;
  const int last = s.separate_hidden ? first + 1 : s.members;
  float sum = 0;
#pragma unroll 5
  for (int k = first; k < last; ++k) {
    const float part =
        parts[(static_cast<std::ptrdiff_t>(k) * gradient.batch + b) * s.hidden + unit];
    sum += Learns(gradient.masks, b, k) ? part : 0.0F;  // else nobody wrote it
  }
  d_hidden[i] = gradient.hidden[i] > 0 ? sum : 0.0F;
}

__global__ void BackwardBiasKernel(HeadShape s, const __grid_constant__ HeadGradient gradient,
                                   float* d_bias) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const int outputs = s.members * s.outputs;
  if (i >= s.actions * outputs) return;
  float sum = 0;
  for (int b = 0; b < gradient.batch; ++b) {
    if (__ldg(gradient.actions + b) != i / outputs) continue;
    sum += __ldg(gradient.d_out + static_cast<std::ptrdiff_t>(b) * outputs + i % outputs);
  }
  d_bias[i] = sum;
}

__global__ void SharedBiasKernel(HeadShape s, const __grid_constant__ HeadGradient gradient,
                                 float* d_bias) {
  __shared__ double scratch[kWarpSize];
  double sum = 0;
  const int size = gradient.batch * s.members * s.outputs;
  for (int i = static_cast<int>(threadIdx.x); i < size; i += static_cast<int>(blockDim.x)) {
    sum += static_cast<double>(gradient.d_out[i]);
  }
  sum = BlockSum(sum, scratch);
  if (threadIdx.x == 0) *d_bias = static_cast<float>(sum);
}

constexpr int kSquareThreads = 1024;

__device__ double Dot(const float* x, const float* y, int size, int lane) {
  double sum = 0;
  for (int i = lane; i < size; i += kWarpSize) {
    sum += static_cast<double>(__ldg(x + i)) * static_cast<double>(__ldg(y + i));
  }
  return WarpSum(sum);
}

// A block a member, a warp a pair of samples s <= t.
__global__ void __launch_bounds__(kSquareThreads)
    HeadSquaresKernel(HeadShape s, const __grid_constant__ HeadGradient gradient, double* squares) {
  extern __shared__ __align__(16) float memory[];
  __shared__ int count;
  __shared__ double warp_sums[kWarpSize];
  int* list = reinterpret_cast<int*>(memory);
  const int member = static_cast<int>(blockIdx.x);
  const int samples = ListSamples(gradient.batch, list, &count,
                                  [&](int b) { return Learns(gradient.masks, b, member); });
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
  const auto units = [&](int b) {
    return gradient.hidden + static_cast<std::ptrdiff_t>(b) * s.hidden_total() +
           MemberUnits(s, member);
  };
  const auto d_out = [&](int b) {
    return gradient.d_out + (static_cast<std::ptrdiff_t>(b) * s.members + member) * s.outputs;
  };
  double sum = 0;
  for (int pair = warp; pair < samples * samples; pair += kSquareThreads / kWarpSize) {
    const int i = pair / samples;
    const int j = pair % samples;
    if (i > j || gradient.actions[list[i]] != gradient.actions[list[j]]) continue;
    const double product = Dot(units(list[i]), units(list[j]), s.hidden, lane) *
                           Dot(d_out(list[i]), d_out(list[j]), s.outputs, lane);
    sum += i == j ? product : 2 * product;
  }
  if (lane == 0) warp_sums[warp] = sum;
  __syncthreads();
  if (threadIdx.x > 0) return;
  double total = 0;
  for (int i = 0; i < kSquareThreads / kWarpSize; ++i) total += warp_sums[i];
  // Rounding must not turn a gradient of zero into a negative square.
  squares[member] = total < 0 ? 0 : total;
}

// A block a (action, member, hidden unit).
__global__ void HeadWeightsKernel(HeadShape s, const __grid_constant__ HeadGradient gradient,
                                  float* dw) {
  const int unit = static_cast<int>(blockIdx.x) % s.hidden;
  const int block = static_cast<int>(blockIdx.x) / s.hidden;
  const int action = block / s.members;
  const int member = block % s.members;
  for (int m = static_cast<int>(threadIdx.x); m < s.outputs; m += static_cast<int>(blockDim.x)) {
    float sum = 0;
    for (int b = 0; b < gradient.batch; ++b) {
      if (gradient.actions[b] != action || !Learns(gradient.masks, b, member)) continue;
      const std::ptrdiff_t row = static_cast<std::ptrdiff_t>(b) * s.members + member;
      sum = fmaf(gradient.hidden[static_cast<std::ptrdiff_t>(b) * s.hidden_total() +
                                 MemberUnits(s, member) + unit],
                 gradient.d_out[row * s.outputs + m], sum);
    }
    dw[static_cast<std::ptrdiff_t>(blockIdx.x) * s.outputs + m] = sum;
  }
}

// A warp a (action, member, hidden unit).
__global__ void __launch_bounds__(kThreads)
    MemberTableKernel(HeadShape s, const float* w, HeadTablePointers tables) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const int row =
      (static_cast<int>(blockIdx.x) * kThreads + static_cast<int>(threadIdx.x)) / kWarpSize;
  if (row >= s.actions * s.members * s.hidden) return;
  float sum = 0;
  for (int m = lane; m < s.outputs; m += kWarpSize) {
    sum += w[static_cast<std::ptrdiff_t>(row) * s.outputs + m];
  }
  sum = WarpSum(sum);
  const int unit = row % s.hidden;
  const int member = row / s.hidden % s.members;
  const int action = row / s.hidden / s.members;
  if (lane == 0) {
    tables.member_weights[(static_cast<std::ptrdiff_t>(member) * s.actions + action) * s.hidden +
                          unit] = sum / static_cast<float>(s.outputs);
  }
}

__global__ void MeanTableKernel(HeadShape s, HeadTablePointers tables) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= s.actions * s.hidden_total()) return;
  const int action = i / s.hidden_total();
  const int unit = i % s.hidden_total() % s.hidden;
  const int first = s.separate_hidden ? i % s.hidden_total() / s.hidden : 0;
  const int last = s.separate_hidden ? first + 1 : s.members;
  float sum = 0;
  for (int k = first; k < last; ++k) {
    sum += tables.member_weights[(k * s.actions + action) * s.hidden + unit];
  }
  tables.mean_weights[i] = sum / static_cast<float>(s.members);
}

// A block an action, a warp a member at a time.
__global__ void __launch_bounds__(kThreads)
    BiasTableKernel(HeadShape s, const float* bias, HeadTablePointers tables) {
  extern __shared__ __align__(16) float memory[];
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const int action = static_cast<int>(blockIdx.x);
  for (int k = static_cast<int>(threadIdx.x) / kWarpSize; k < s.members; k += kWarps) {
    float sum = 0;
    for (int m = lane; m < s.outputs; m += kWarpSize) sum += BiasAt(s, bias, action, k, m);
    sum = WarpSum(sum) / static_cast<float>(s.outputs);
    if (lane > 0) continue;
    memory[k] = sum;
    tables.member_bias[k * s.actions + action] = sum;
  }
  __syncthreads();
  if (threadIdx.x > 0) return;
  float sum = 0;
  for (int k = 0; k < s.members; ++k) sum += memory[k];
  tables.mean_bias[action] = sum / static_cast<float>(s.members);
}

// Kernels with more than 48 KiB of shared memory must be allowed to have it.
template <typename Kernel>
void AllowSharedMemory(Kernel kernel, std::size_t bytes) {
  CheckCuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 static_cast<int>(bytes)),
            "shared memory of the head");
}

void CheckLaunch(const char* what) { CheckCuda(cudaGetLastError(), what); }

}  // namespace

HeadShape HeadShapeOf(const NetworkSpec& spec) {
  return {.actions = spec.actions,
          .members = spec.members,
          .hidden = spec.hidden_units,
          .outputs = spec.outputs,
          .separate_hidden = spec.separate_hidden,
          .shared_bias = spec.shared_output_bias};
}

void LaunchSelect(const HeadShape& shape, int batch, const HeadSelection* selections, int count,
                  cudaStream_t stream, Follow follow) {
  UPER_CHECK(count >= 1 && count <= kMaxSelections, "selections to do");
  Selections all;
  for (int i = 0; i < count; ++i) all.list[i] = selections[i];
  const SelectMemory memory = SelectMemory::Of(shape);
  const std::size_t bytes = memory.bytes(batch);
  AllowSharedMemory(SelectKernel, bytes);
  const dim3 grid(shape.actions * shape.members, kHeadParts * Pieces(shape.outputs, memory.width),
                  count * kSampleBlocks);
  LaunchKernel("head outputs", SelectKernel, {grid, kThreads, bytes, stream, follow}, shape, batch,
               all, memory);
}

void LaunchMeans(const HeadMeans& means, cudaStream_t stream, Follow follow) {
  const dim3 grid(means.members, means.batch);
  const std::size_t bytes = sizeof(float) * means.actions;
  LaunchKernel("head means", MeansKernel, {grid, kThreads, bytes, stream, follow}, means);
}

void LaunchAtomValues(const HeadShape& shape, const AtomValues& call, cudaStream_t stream) {
  const int rows = call.batch * shape.actions * shape.members;
  AtomValuesKernel<<<Pieces(rows, kWarps), kThreads, 0, stream>>>(shape, call);
  CheckLaunch("values of atoms");
}

void LaunchChoose(const HeadShape& shape, int batch, bool ensemble, const float* values,
                  int* chosen, cudaStream_t stream) {
  ChooseKernel<<<batch, shape.members, 0, stream>>>(shape, ensemble, values, chosen);
  CheckLaunch("greedy actions");
}

void LaunchMemberMean(const HeadShape& shape, int batch, const float* values, float* q,
                      cudaStream_t stream) {
  MemberMeanKernel<<<Pieces(batch * shape.actions, kThreads), kThreads, 0, stream>>>(shape, batch,
                                                                                     values, q);
  CheckLaunch("mean over members");
}

void LaunchBackwardHidden(const HeadShape& shape, const HeadGradient& gradient, const float* w,
                          float* parts, cudaStream_t stream, Follow follow) {
  const std::size_t bytes =
      sizeof(float) * (kTileOutputs * kSamples + kRows * kRowStride + kWarps * kSamples * kRows) +
      sizeof(int) * gradient.batch;
  AllowSharedMemory(BackwardHiddenKernel, bytes);
  const dim3 grid(shape.actions * shape.members, Pieces(shape.hidden, kRows));
  LaunchKernel("gradient of the hidden layer", BackwardHiddenKernel,
               {grid, kThreads, bytes, stream, follow}, shape, gradient, w, parts);
}

void LaunchSumHidden(const HeadShape& shape, const HeadGradient& gradient, const float* parts,
                     float* d_hidden, cudaStream_t stream, Follow follow) {
  const int size = gradient.batch * shape.hidden_total();
  LaunchKernel("sum of the hidden layer's gradient", SumHiddenKernel,
               {static_cast<unsigned>(Pieces(size, kThreads)), kThreads, 0, stream, follow}, shape,
               gradient, parts, d_hidden);
}

void LaunchBackwardBias(const HeadShape& shape, const HeadGradient& gradient, float* d_bias,
                        cudaStream_t stream) {
  if (shape.shared_bias) {
    SharedBiasKernel<<<1, kThreads, 0, stream>>>(shape, gradient, d_bias);
  } else {
    const int size = shape.actions * shape.members * shape.outputs;
    BackwardBiasKernel<<<Pieces(size, kThreads), kThreads, 0, stream>>>(shape, gradient, d_bias);
  }
  CheckLaunch("gradient of the head's bias");
}

void LaunchHeadSquares(const HeadShape& shape, const HeadGradient& gradient, double* squares,
                       cudaStream_t stream) {
  HeadSquaresKernel<<<shape.members, kSquareThreads, sizeof(int) * gradient.batch, stream>>>(
      shape, gradient, squares);
  CheckLaunch("norm of the head's gradient");
}

void LaunchHeadWeights(const HeadShape& shape, const HeadGradient& gradient, float* dw,
                       cudaStream_t stream) {
  const int rows = shape.actions * shape.members * shape.hidden;
  HeadWeightsKernel<<<rows, std::min(kThreads, Pieces(shape.outputs, kWarpSize) * kWarpSize), 0,
                      stream>>>(shape, gradient, dw);
  CheckLaunch("gradient of the head");
}

void LaunchTables(const HeadShape& shape, const float* w, const float* bias,
                  const HeadTablePointers& tables, cudaStream_t stream) {
  const int rows = shape.actions * shape.members * shape.hidden;
  MemberTableKernel<<<Pieces(rows, kWarps), kThreads, 0, stream>>>(shape, w, tables);
  CheckLaunch("averages of the head");
  const int entries = shape.hidden_total() * shape.actions;
  MeanTableKernel<<<Pieces(entries, kThreads), kThreads, 0, stream>>>(shape, tables);
  CheckLaunch("averages over members");
  LaunchBiasTables(shape, bias, tables, stream);
}

void LaunchBiasTables(const HeadShape& shape, const float* bias, const HeadTablePointers& tables,
                      cudaStream_t stream) {
  BiasTableKernel<<<shape.actions, kThreads, sizeof(float) * shape.members, stream>>>(shape, bias,
                                                                                      tables);
  CheckLaunch("averages of the bias");
}

}  // namespace uper
