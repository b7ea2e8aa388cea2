#include <algorithm>

#include "uper/base/check.h"
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
// Hidden units whose values lie in shared memory at a time.
constexpr int kSliceUnits = 64;
// A lane has every 32nd of a block's outputs: 201 fit.
constexpr int kLaneOutputs = 7;
constexpr int kTileOutputs = kLaneOutputs * kWarpSize;
// Rows of weights that a warp fetches at a time: enough to keep memory busy.
constexpr int kFetch = 4;

// Weights of one lane: rows at `stride`, outputs first, first + 32, ...; beyond the end 0.
__device__ void FetchRows(const float* rows, std::ptrdiff_t stride, int count, int first,
                          int outputs, float (&w)[kFetch][kLaneOutputs]) {
#pragma unroll
  for (int row = 0; row < kFetch; ++row) {
#pragma unroll
    for (int j = 0; j < kLaneOutputs; ++j) {
      const int output = first + j * kWarpSize;
      w[row][j] = row < count && output < outputs ? __ldg(rows + row * stride + output) : 0.0F;
    }
  }
}

// sums[sample][output] += unit of the sample * weight, for rows of hidden units that lie
// unit_step apart in `units` [unit][kSamples].
__device__ void AddRows(const float (&w)[kFetch][kLaneOutputs], const float* units, int unit_step,
                        int count, float (&sums)[kSamples][kLaneOutputs]) {
#pragma unroll
  for (int row = 0; row < kFetch; ++row) {
    if (row >= count) break;
    const float4 low = *reinterpret_cast<const float4*>(units + row * unit_step * kSamples);
    const float4 high = *reinterpret_cast<const float4*>(units + row * unit_step * kSamples + 4);
    const float values[kSamples] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
    for (int i = 0; i < kSamples; ++i) {
#pragma unroll
      for (int j = 0; j < kLaneOutputs; ++j) sums[i][j] = fmaf(values[i], w[row][j], sums[i][j]);
    }
  }
}

// Shared memory of a selecting block.
struct SelectMemory {
  float units[kSliceUnits][kSamples];
  float warp_sums[kWarps][kSamples / 2][kTileOutputs];
  int count;
};
std::size_t SelectBytes(int batch) { return sizeof(SelectMemory) + sizeof(int) * batch; }

// What one block of a selection works on.
struct SelectPlace {
  int action, member;
  int part;
  int first_output;
  int share;  // of the samples
};

// The warps share the hidden units of the part, the lanes go along the outputs: every weight is
// fetched by the one lane that needs it.
__device__ void SelectBlock(const HeadShape& s, int batch, const HeadSelection& selection,
                            const SelectPlace& place, SelectMemory& memory, int* list) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
  const bool all = selection.actions == nullptr;
  if (!selection.actions_ready) AwaitPredecessor();
  const int samples = ListSamples(batch, list, &memory.count, [&](int b) {
    return all || __ldg(selection.actions + b * selection.sample_stride +
                        place.member * selection.member_stride) == place.action;
  });
  const int part_size = (s.hidden + kHeadParts - 1) / kHeadParts;
  const int begin = min(place.part * part_size, s.hidden);
  const int end = min(begin + part_size, s.hidden);
  const std::ptrdiff_t row_step = static_cast<std::ptrdiff_t>(kWarps) * s.outputs;
  const int first_output = place.first_output + lane;
  const float* w = selection.w + BlockAt(s, place.action, place.member);
  const int rows = all ? s.actions * s.members : s.members;
  const int row = all ? place.action * s.members + place.member : place.member;
  const auto rows_left = [&](int unit) { return (end - unit + kWarps - 1) / kWarps; };
  const auto row_at = [&](int unit) { return w + static_cast<std::ptrdiff_t>(unit) * s.outputs; };
  bool awaited = !selection.actions_ready;
  for (int first = place.share * kSamples; first < samples; first += kSampleBlocks * kSamples) {
    float sums[kSamples][kLaneOutputs] = {};
    for (int slice = begin; slice < end; slice += kSliceUnits) {
      const int slice_end = min(slice + kSliceUnits, end);
      float fetched[kFetch][kLaneOutputs];
      FetchRows(row_at(slice + warp), row_step, rows_left(slice + warp), first_output, s.outputs,
                fetched);
      if (!awaited) AwaitPredecessor();
      awaited = true;
      __syncthreads();
      for (int i = static_cast<int>(threadIdx.x); i < kSliceUnits * kSamples; i += kThreads) {
        const int sample = first + i / kSliceUnits;
        const int unit = slice + i % kSliceUnits;
        memory.units[i % kSliceUnits][i / kSliceUnits] =
            sample < samples && unit < slice_end
                ? __ldg(selection.hidden +
                        static_cast<std::ptrdiff_t>(list[sample]) * s.hidden_total() +
                        MemberUnits(s, place.member) + unit)
                : 0.0F;
      }
      __syncthreads();
      for (int unit = slice + warp; unit < slice_end; unit += kFetch * kWarps) {
        const int left = (slice_end - unit + kWarps - 1) / kWarps;
        if (unit > slice + warp) {
          FetchRows(row_at(unit), row_step, left, first_output, s.outputs, fetched);
        }
        AddRows(fetched, memory.units[unit - slice], kWarps, left, sums);
      }
    }
    // Adds up the warps' sums in order, half of the samples at a time.
    constexpr int kHalf = kSamples / 2;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      __syncthreads();
#pragma unroll
      for (int i = 0; i < kHalf; ++i) {
#pragma unroll
        for (int j = 0; j < kLaneOutputs; ++j) {
          memory.warp_sums[warp][i][j * kWarpSize + lane] = sums[half * kHalf + i][j];
        }
      }
      __syncthreads();
      const int width = min(kTileOutputs, s.outputs - place.first_output);
      for (int i = static_cast<int>(threadIdx.x); i < kHalf * kTileOutputs; i += kThreads) {
        const int sample = first + half * kHalf + i / kTileOutputs;
        const int output = i % kTileOutputs;
        if (sample >= samples || output >= width) continue;
        float sum = 0;
#pragma unroll
        for (int g = 0; g < kWarps; ++g) sum += memory.warp_sums[g][i / kTileOutputs][output];
        const std::ptrdiff_t at =
            (static_cast<std::ptrdiff_t>(place.part) * batch + list[sample]) * rows + row;
        selection.parts[at * s.outputs + place.first_output + output] = sum;
      }
    }
  }
  if (!awaited) AwaitPredecessor();
}

constexpr int kUnitsPerLane = 16;  // in registers at a time

// One member of one sample. A warp an action at a time, its lanes go along the hidden units.
__device__ void MeansBlock(const HeadMeans& means, int member, int sample, float* row_values) {
  const std::ptrdiff_t b = sample;
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
  if (means.chosen == nullptr && means.counts == nullptr) return;
  __syncthreads();
  if (threadIdx.x > 0) return;
  if (means.counts != nullptr) {
    const int count = means.counts[sample] + 1;
    means.counts[sample] = count;
    __threadfence_system();  // first the values of all threads
    *static_cast<volatile int*>(means.shown_counts + sample) = count;
  }
  if (means.chosen == nullptr) return;
  int best = 0;
  for (int a = 1; a < means.actions; ++a) {
    if (row_values[a] > row_values[best]) best = a;
  }
  means.chosen[b * means.members + member] = best;
}

// Grid: the means' blocks, [member, sample], and then those of the selections: [selection, share
// of the samples, tile of outputs, part, action x member].
__global__ void __launch_bounds__(kThreads, 2)
    HeadForwardKernel(HeadShape s, int batch, const __grid_constant__ Selections selections,
                      const __grid_constant__ HeadMeans means, int means_blocks) {
  extern __shared__ __align__(16) float shared[];
  int block = static_cast<int>(blockIdx.x);
  if (block < means_blocks) {
    MeansBlock(means, block % means.members, block / means.members, shared);
    return;
  }
  block -= means_blocks;
  const int tiles = (s.outputs + kTileOutputs - 1) / kTileOutputs;
  SelectPlace place;
  place.action = block % (s.actions * s.members) / s.members;
  place.member = block % s.members;
  block /= s.actions * s.members;
  place.part = block % kHeadParts;
  block /= kHeadParts;
  place.first_output = block % tiles * kTileOutputs;
  block /= tiles;
  place.share = block % kSampleBlocks;
  SelectBlock(s, batch, selections.list[block / kSampleBlocks], place,
              *reinterpret_cast<SelectMemory*>(shared),
              reinterpret_cast<int*>(shared + sizeof(SelectMemory) / sizeof(float)));
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

// Of kSamples values in every lane, the sums over lanes: lane 4 i gets that of value i.
__device__ float SumEach(float (&values)[kSamples]) {
  static_assert(kSamples == 8);
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
#pragma unroll
  for (int half = 4; half >= 1; half /= 2) {
    const bool upper = (lane & 4 * half) != 0;
#pragma unroll
    for (int i = 0; i < half; ++i) {
      const float kept = upper ? values[i + half] : values[i];
      const float given = upper ? values[i] : values[i + half];
      values[i] = kept + __shfl_xor_sync(kAllLanes, given, 4 * half);
    }
  }
  float sum = values[0];
  sum += __shfl_xor_sync(kAllLanes, sum, 2);
  return sum + __shfl_xor_sync(kAllLanes, sum, 1);
}

constexpr int kBlockUnits = kWarps * kFetch;  // hidden units of one block of BackwardHiddenKernel

// Grid: action x member, groups of hidden units. A warp takes kFetch of them, its lanes go along
// the outputs.
__global__ void __launch_bounds__(kThreads, 2)
    BackwardHiddenKernel(HeadShape s, const __grid_constant__ HeadGradient gradient, const float* w,
                         float* parts) {
  extern __shared__ __align__(16) int list[];
  __shared__ int count;
  const int action = static_cast<int>(blockIdx.x) / s.members;
  const int member = static_cast<int>(blockIdx.x) % s.members;
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
  const int unit = static_cast<int>(blockIdx.y) * kBlockUnits + warp * kFetch;
  const float* rows =
      w + BlockAt(s, action, member) + static_cast<std::ptrdiff_t>(unit) * s.outputs;
  const int samples = ListSamples(gradient.batch, list, &count, [&](int b) {
    return __ldg(gradient.actions + b) == action && Learns(gradient.masks, b, member);
  });
  bool awaited = false;
  for (int first = 0; first < samples; first += kSamples) {
    float sums[kFetch][kSamples] = {};
    for (int tile = lane; tile - lane < s.outputs; tile += kTileOutputs) {
      float weights[kFetch][kLaneOutputs];
      FetchRows(rows, s.outputs, s.hidden - unit, tile, s.outputs, weights);
      if (!awaited) AwaitPredecessor();  // the weights were there before
      awaited = true;
#pragma unroll
      for (int i = 0; i < kSamples; ++i) {
        if (first + i >= samples) break;
        const float* d_out =
            gradient.d_out +
            (static_cast<std::ptrdiff_t>(list[first + i]) * s.members + member) * s.outputs;
#pragma unroll
        for (int j = 0; j < kLaneOutputs; ++j) {
          const int output = tile + j * kWarpSize;
          const float d = output < s.outputs ? __ldg(d_out + output) : 0.0F;
#pragma unroll
          for (int row = 0; row < kFetch; ++row) {
            sums[row][i] = fmaf(weights[row][j], d, sums[row][i]);
          }
        }
      }
    }
#pragma unroll
    for (int row = 0; row < kFetch; ++row) {
      const float sum = SumEach(sums[row]);
      const int sample = first + lane / 4;
      if (lane % 4 != 0 || sample >= samples || unit + row >= s.hidden) continue;
      const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(member) * gradient.batch + list[sample];
      parts[at * s.hidden + unit + row] = sum;
    }
  }
  if (!awaited) AwaitPredecessor();
}

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

__global__ void __launch_bounds__(kThreads)
    BackwardBiasKernel(HeadShape s, const __grid_constant__ HeadGradient gradient, float* d_bias,
                       double* squares) {
  __shared__ double scratch[kWarpSize];
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const int outputs = s.members * s.outputs;
  float sum = 0;
  if (i < s.actions * outputs) {
#pragma unroll 8
    for (int b = 0; b < gradient.batch; ++b) {
      if (__ldg(gradient.actions + b) != i / outputs) continue;
      sum += __ldg(gradient.d_out + static_cast<std::ptrdiff_t>(b) * outputs + i % outputs);
    }
    d_bias[i] = sum;
  }
  const double square = BlockSum(static_cast<double>(sum) * static_cast<double>(sum), scratch);
  if (threadIdx.x == 0) squares[blockIdx.x] = square;
}

__global__ void SharedBiasKernel(HeadShape s, const __grid_constant__ HeadGradient gradient,
                                 float* d_bias, double* squares) {
  __shared__ double scratch[kWarpSize];
  double sum = 0;
  const int size = gradient.batch * s.members * s.outputs;
  for (int i = static_cast<int>(threadIdx.x); i < size; i += static_cast<int>(blockDim.x)) {
    sum += static_cast<double>(gradient.d_out[i]);
  }
  sum = BlockSum(sum, scratch);
  if (threadIdx.x > 0) return;
  const float rounded = static_cast<float>(sum);
  *d_bias = rounded;
  *squares = static_cast<double>(rounded) * static_cast<double>(rounded);
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

void LaunchHeadForward(const HeadShape& shape, int batch, const HeadForward& call,
                       cudaStream_t stream, Follow follow) {
  UPER_CHECK(call.selections >= 0 && call.selections <= kMaxSelections, "selections to do");
  Selections selections;
  for (int i = 0; i < call.selections; ++i) selections.list[i] = call.list[i];
  const int means_blocks = call.means.values != nullptr ? call.means.members * call.means.batch : 0;
  const int select_blocks = call.selections * kSampleBlocks * Pieces(shape.outputs, kTileOutputs) *
                            kHeadParts * shape.actions * shape.members;
  const std::size_t bytes =
      std::max(call.selections > 0 ? SelectBytes(batch) : 0, sizeof(float) * call.means.actions);
  LaunchKernel(
      "forward pass of the head", HeadForwardKernel,
      {static_cast<unsigned>(means_blocks + select_blocks), kThreads, bytes, stream, follow}, shape,
      batch, selections, call.means, means_blocks);
}

void LaunchSelect(const HeadShape& shape, int batch, const HeadSelection& selection,
                  cudaStream_t stream, Follow follow) {
  LaunchHeadForward(shape, batch, {.list = {selection}, .selections = 1}, stream, follow);
}

void LaunchMeans(const HeadMeans& means, cudaStream_t stream, Follow follow) {
  LaunchHeadForward({}, means.batch, {.means = means}, stream, follow);
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
  const std::size_t bytes = sizeof(int) * gradient.batch;
  const dim3 grid(shape.actions * shape.members, Pieces(shape.hidden, kBlockUnits));
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

int BiasBlocks(const HeadShape& shape) {
  return shape.shared_bias ? 1 : Pieces(shape.actions * shape.members * shape.outputs, kThreads);
}

void LaunchBackwardBias(const HeadShape& shape, const HeadGradient& gradient, float* d_bias,
                        double* squares, cudaStream_t stream) {
  LaunchKernel(
      "gradient of the head's bias", shape.shared_bias ? SharedBiasKernel : BackwardBiasKernel,
      {.grid = static_cast<unsigned>(BiasBlocks(shape)), .block = kThreads, .stream = stream},
      shape, gradient, d_bias, squares);
}

void LaunchHeadSquares(const HeadShape& shape, const HeadGradient& gradient, double* squares,
                       cudaStream_t stream) {
  LaunchKernel("norm of the head's gradient", HeadSquaresKernel,
               {.grid = static_cast<unsigned>(shape.members),
                .block = kSquareThreads,
                .shared_bytes = sizeof(int) * gradient.batch,
                .stream = stream},
               shape, gradient, squares);
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
  LaunchKernel("averages of the bias", BiasTableKernel,
               {.grid = static_cast<unsigned>(shape.actions),
                .block = kThreads,
                .shared_bytes = sizeof(float) * shape.members,
                .stream = stream},
               shape, bias, tables);
}

}  // namespace uper
