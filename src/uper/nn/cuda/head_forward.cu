#include <cuda_pipeline_primitives.h>

#include <algorithm>

#include "uper/base/check.h"
#include "uper/nn/cuda/head_kernels.h"
#include "uper/nn/cuda/head_parts.cuh"
#include "uper/nn/cuda/launch.cuh"
#include "uper/nn/cuda/reductions.cuh"

namespace uper {
namespace {

constexpr int kThreads = kHeadThreads;
constexpr int kWarps = kHeadWarps;

int Pieces(int total, int piece) { return (total + piece - 1) / piece; }

struct Selections {
  HeadSelection list[kMaxSelections];
};

// Hidden units whose values lie in shared memory at a time.
constexpr int kSliceUnits = 64;

// What one block of a selection works on: some samples of one (action, member).
struct SelectPlace {
  int member;
  int part;
  int first_output;
};
struct SelectedSamples {
  int action = 0;
  int count = 0;  // 0: nothing to do
  int list[kSamples];
};

// Groups of samples that take the same action: no more than this for one member.
int MostGroups(const HeadShape& s, int batch, bool all_actions) {
  const int groups = Pieces(batch, kSamples);
  return all_actions ? s.actions * groups : std::min(batch, s.actions + groups - 1);
}

// The samples of the index-th group of a member, actions ascending. One warp.
__device__ void FindSamples(const HeadShape& s, int batch, const HeadSelection& selection,
                            int member, int index, SelectedSamples& found) {
  const int lane = static_cast<int>(threadIdx.x);
  const auto votes = [&](int first, int action) {
    const int b = first + lane;
    return __ballot_sync(kAllLanes,
                         b < batch && (selection.actions == nullptr ||
                                       __ldg(selection.actions + b * selection.sample_stride +
                                             member * selection.member_stride) == action));
  };
  int action = 0;
  for (; action < s.actions; ++action) {
    int samples = 0;
    for (int first = 0; first < batch; first += kWarpSize) samples += __popc(votes(first, action));
    const int groups = (samples + kSamples - 1) / kSamples;
    if (index < groups) break;
    index -= groups;
  }
  int rank = -index * kSamples;  // in the group
  for (int first = 0; first < batch && action < s.actions && rank < kSamples; first += kWarpSize) {
    const unsigned mine = votes(first, action);
    const int place = rank + __popc(mine & ((1U << lane) - 1));
    if ((mine >> lane & 1) != 0 && place >= 0 && place < kSamples) found.list[place] = first + lane;
    rank += __popc(mine);
  }
  if (lane > 0) return;
  found.action = action;
  found.count = action < s.actions ? min(rank, kSamples) : 0;
}

// Shared memory of a selecting block.
struct SelectMemory {
  float units[kSliceUnits][kSamples];  // 0 where there is no unit
  union {
    float weights[kSliceUnits * kTileOutputs];  // [unit][output of the tile]
    float warp_sums[kWarps][kSamples][kTileOutputs];
  };
  SelectedSamples samples;
};

// Starts the copy of `rows` rows of weights. Rows of one tile are one piece of memory.
__device__ void StartWeights(const float* from, int rows, int width, int outputs, float* to) {
  const int size = rows * width;
  const bool vectors = width == outputs && size % 4 == 0 &&
                       reinterpret_cast<std::uintptr_t>(from) % (4 * sizeof(float)) == 0;
  if (vectors) {
    for (int i = 4 * static_cast<int>(threadIdx.x); i < size; i += 4 * kThreads) {
      __pipeline_memcpy_async(to + i, from + i, 4 * sizeof(float));
    }
  } else {
    for (int i = static_cast<int>(threadIdx.x); i < size; i += kThreads) {
      __pipeline_memcpy_async(to + i, from + i / width * outputs + i % width, sizeof(float));
    }
  }
  __pipeline_commit();
}

// The units of a slice for the listed samples.
__device__ void LoadUnits(const float* hidden, int stride, const int* samples, int count, int left,
                          SelectMemory& memory) {
  for (int i = static_cast<int>(threadIdx.x); i < kSliceUnits * kSamples; i += kThreads) {
    const int sample = i / kSliceUnits;
    const int unit = i % kSliceUnits;
    memory.units[unit][sample] =
        sample < count && unit < left ? __ldg(hidden + samples[sample] * stride + unit) : 0.0F;
  }
}

// sums[sample][output] += unit of the sample * weight, for a warp's units of a slice. A lane reads
// the last output in the place of one that is not there.
template <int kLane>
__device__ void AddUnits(const SelectMemory& memory, int units, int width, int warp, int lane,
                         float (&sums)[kSamples][kLane]) {
#pragma unroll 1
  for (int unit = warp; unit < units; unit += kWarps) {
    const float4 low = *reinterpret_cast<const float4*>(memory.units[unit]);
    const float4 high = *reinterpret_cast<const float4*>(memory.units[unit] + 4);
    const float values[kSamples] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
    const float* row = memory.weights + unit * width;
#pragma unroll
    for (int j = 0; j < kLane; ++j) {
      const float weight = row[min(lane + j * kWarpSize, width - 1)];
#pragma unroll
      for (int i = 0; i < kSamples; ++i) sums[i][j] = fmaf(values[i], weight, sums[i][j]);
    }
  }
}

// The warps share the hidden units of the part, the lanes go along the outputs.
template <int kLane>
__device__ void SelectBlock(const HeadShape& s, int batch, const HeadSelection& selection,
                            const SelectPlace& place, int group, SelectMemory& memory) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
  if (!selection.actions_ready) AwaitPredecessor();
  if (warp == 0) FindSamples(s, batch, selection, place.member, group, memory.samples);
  __syncthreads();
  const int count = memory.samples.count;
  const int action = memory.samples.action;
  if (count == 0) return;  // others await the kernel before: every batch has samples
  const int part_size = (s.hidden + kHeadParts - 1) / kHeadParts;
  const int begin = min(place.part * part_size, s.hidden);
  const int end = min(begin + part_size, s.hidden);
  const int width = min(kLane * kWarpSize, s.outputs - place.first_output);
  const float* w = selection.w + BlockAt(s, action, place.member) + place.first_output;
  const float* hidden = selection.hidden + MemberUnits(s, place.member);
  bool awaited = !selection.actions_ready;
  float sums[kSamples][kLane] = {};
  for (int slice = begin; slice < end; slice += kSliceUnits) {
    const int units = min(kSliceUnits, end - slice);
    if (slice > begin) __syncthreads();  // what was there has been read
    StartWeights(w + slice * s.outputs, units, width, s.outputs, memory.weights);
    if (!awaited) AwaitPredecessor();
    awaited = true;
    LoadUnits(hidden + slice, s.hidden_total(), memory.samples.list, count, units, memory);
    __pipeline_wait_prior(0);
    __syncthreads();
    AddUnits(memory, units, width, warp, lane, sums);
  }
  if (!awaited) AwaitPredecessor();
  __syncthreads();  // the sums take the place of the weights
#pragma unroll
  for (int i = 0; i < kSamples; ++i) {
#pragma unroll
    for (int j = 0; j < kLane; ++j) memory.warp_sums[warp][i][j * kWarpSize + lane] = sums[i][j];
  }
  __syncthreads();
  const int output = static_cast<int>(threadIdx.x);
  if (output >= width) return;
  const bool all = selection.actions == nullptr;
  const int rows = all ? s.actions * s.members : s.members;
  const int row = all ? action * s.members + place.member : place.member;
  for (int i = 0; i < count; ++i) {
    float sum = 0;
#pragma unroll
    for (int g = 0; g < kWarps; ++g) sum += memory.warp_sums[g][i][output];
    const std::ptrdiff_t at =
        (static_cast<std::ptrdiff_t>(place.part) * batch + memory.samples.list[i]) * rows + row;
    selection.parts[at * s.outputs + place.first_output + output] = sum;
  }
}
static_assert(kTileOutputs <= kThreads, "a thread adds up one output");

constexpr int kUnitsPerLane = 16;  // in registers at a time

// Grid: members, samples. A warp an action at a time, its lanes go along the hidden units.
__global__ void __launch_bounds__(kThreads) MeansKernel(const __grid_constant__ HeadMeans means) {
  extern __shared__ __align__(16) float row_values[];  // [action]
  const int member = static_cast<int>(blockIdx.x);
  const int sample = static_cast<int>(blockIdx.y);
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

// Grid: groups of samples x members, parts x tiles of outputs, selections.
template <int kLane>
__global__ void __launch_bounds__(kThreads, 3)
    SelectKernel(HeadShape s, int batch, const __grid_constant__ Selections selections) {
  extern __shared__ __align__(16) float shared[];
  const SelectPlace place{
      .member = static_cast<int>(blockIdx.x) % s.members,
      .part = static_cast<int>(blockIdx.y) % kHeadParts,
      .first_output = static_cast<int>(blockIdx.y) / kHeadParts * kLane * kWarpSize};
  SelectBlock<kLane>(s, batch, selections.list[blockIdx.z], place,
                     static_cast<int>(blockIdx.x) / s.members,
                     *reinterpret_cast<SelectMemory*>(shared));
}
template <int kLane, bool kWhole>
struct SelectKernels {
  static auto Get() { return SelectKernel<kLane>; }
};

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

void LaunchSelect(const HeadShape& shape, int batch, std::span<const HeadSelection> selections,
                  cudaStream_t stream, Follow follow) {
  UPER_CHECK(!selections.empty() && selections.size() <= kMaxSelections, "selections to do");
  Selections list;
  std::copy(selections.begin(), selections.end(), list.list);
  int groups = 0;
  for (const HeadSelection& selection : selections) {
    groups = std::max(groups, MostGroups(shape, batch, selection.actions == nullptr));
  }
  const dim3 grid(groups * shape.members, kHeadParts * Pieces(shape.outputs, kTileOutputs),
                  static_cast<unsigned>(selections.size()));
  LaunchKernel("outputs of the head", KernelFor<SelectKernels>(shape.outputs),
               {grid, kThreads, sizeof(SelectMemory), stream, follow}, shape, batch, list);
}

void LaunchMeans(const HeadMeans& means, cudaStream_t stream, Follow follow) {
  LaunchKernel(
      "means of the head", MeansKernel,
      {dim3(means.members, means.batch), kThreads, sizeof(float) * means.actions, stream, follow},
      means);
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

}  // namespace uper
