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

// Blocks that share the samples of one (action, member).
constexpr int kSampleBlocks = 2;
// Hidden units whose values lie in shared memory at a time.
constexpr int kSliceUnits = 64;

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

}  // namespace uper
