#include <algorithm>

#include "uper/base/arithmetic.h"
#include "uper/nn/cuda/head/head_common.cuh"
#include "uper/nn/cuda/head/head_kernels.h"
#include "uper/nn/cuda/ptx/reductions.cuh"
#include "uper/nn/cuda/runtime/launch.cuh"

namespace uper::cuda {
namespace {

constexpr int kThreads = kHeadThreads;
constexpr int kWarps = kHeadWarps;

constexpr int kUnitsPerLane = 16;  // in registers at a time

__device__ void Publish(float value, int count, std::uint64_t* to) {
  const std::uint64_t entry = static_cast<std::uint64_t>(count) << 32 | __float_as_uint(value);
  asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(__cvta_generic_to_global(to)), "l"(entry)
               : "memory");
}

// A lane's data of an action: its part of the bias, and the weights from `first` on.
struct ActionShare {
  float weight[kUnitsPerLane];
  float bias;

  __device__ void Fetch(const HeadForwardMean& means, int member, int action, int first) {
    const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
    const std::ptrdiff_t row = static_cast<std::ptrdiff_t>(member) * means.actions + action;
    const float* w = means.weights + row * means.hidden;
#pragma unroll
    for (int i = 0; i < kUnitsPerLane; ++i) {
      const int at = first + lane + i * kWarpSize;
      weight[i] = at < means.hidden ? __ldg(w + at) : 0.0F;
    }
    bias = 0;
    for (int k = lane; k < means.bias_members; k += kWarpSize) {
      bias += __ldg(means.bias + k * means.actions + row);
    }
  }
};

// Warps per block if values are published: there are few blocks, and the host waits for them.
constexpr int kPublishedWarps = 20;

// Grid: members, samples. A warp handles one action at a time; its lanes go along the hidden units.
// Few registers leave room for the blocks of the next kernel. The host waits for published values,
// so everything that is known before the hidden units is loaded early.
template <bool kPublished>
__global__ void __launch_bounds__(kPublished ? kPublishedWarps* kWarpSize : kThreads,
                                  kPublished ? 1 : 4)
    ForwardMeanKernel(const __grid_constant__ HeadForwardMean means) {
  extern __shared__ __align__(16) float row_values[];  // [action]
  const int member = static_cast<int>(blockIdx.x);
  const int sample = static_cast<int>(blockIdx.y);
  const std::ptrdiff_t b = sample;
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
  const int warps = static_cast<int>(blockDim.x) / kWarpSize;
  ActionShare share;
  int count = 0;
  if constexpr (kPublished) {
    share.Fetch(means, member, warp, 0);
    count = means.sequences[sample] + 1;
  }
  AwaitPredecessor();
  const float* units = means.units + b * means.unit_stride + member * means.member_step;
  for (int action = warp; action < means.actions; action += warps) {
    float sum = 0;
    for (int first = 0; first < means.hidden; first += kUnitsPerLane * kWarpSize) {
      float unit[kUnitsPerLane];
#pragma unroll
      for (int i = 0; i < kUnitsPerLane; ++i) {
        const int at = first + lane + i * kWarpSize;
        unit[i] = at < means.hidden ? __ldg(units + at) : 0.0F;
      }
      if (!kPublished || action != warp || first > 0) share.Fetch(means, member, action, first);
#pragma unroll
      for (int i = 0; i < kUnitsPerLane; ++i) sum = fmaf(share.weight[i], unit[i], sum);
    }
    sum = WarpSum(sum) + WarpSum(share.bias) / static_cast<float>(means.bias_members);
    if (lane > 0) continue;
    row_values[action] = sum;
    if (!kPublished) means.values[(b * means.members + member) * means.actions + action] = sum;
  }
  __syncthreads();
  if constexpr (kPublished) {
    // Written side by side, so that they travel together.
    for (int a = static_cast<int>(threadIdx.x); a < means.actions; a += warps * kWarpSize) {
      Publish(row_values[a], count, means.mailbox + b * means.actions + a);
    }
    if (threadIdx.x == 0) means.sequences[sample] = count;
  } else if (means.chosen != nullptr && threadIdx.x == 0) {
    int best = 0;
    for (int a = 1; a < means.actions; ++a) {
      if (row_values[a] > row_values[best]) best = a;
    }
    means.chosen[b * means.members + member] = best;
  }
}

// One warp per (sample, action, member).
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

// One block per sample, one thread per member.
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

void LaunchForwardMean(const HeadForwardMean& means, cudaStream_t stream, LaunchOrder order) {
  const bool publishes = means.sequences != nullptr;
  const int warps = std::min(publishes ? kPublishedWarps : kWarps, means.actions);
  LaunchKernel("means of the head", publishes ? ForwardMeanKernel<true> : ForwardMeanKernel<false>,
               {dim3(means.members, means.batch), static_cast<unsigned>(warps * kWarpSize),
                sizeof(float) * means.actions, stream, order},
               means);
}

void LaunchAtomValues(const HeadShape& shape, const AtomValues& call, cudaStream_t stream) {
  const int rows = call.batch * shape.actions * shape.members;
  AtomValuesKernel<<<CeilDiv(rows, kWarps), kThreads, 0, stream>>>(shape, call);
  CheckLaunch("values of atoms");
}

void LaunchChoose(const HeadShape& shape, int batch, bool ensemble, const float* values,
                  int* chosen, cudaStream_t stream) {
  ChooseKernel<<<batch, shape.members, 0, stream>>>(shape, ensemble, values, chosen);
  CheckLaunch("greedy actions");
}

void LaunchMemberMean(const HeadShape& shape, int batch, const float* values, float* q,
                      cudaStream_t stream) {
  MemberMeanKernel<<<CeilDiv(batch * shape.actions, kThreads), kThreads, 0, stream>>>(shape, batch,
                                                                                      values, q);
  CheckLaunch("mean over members");
}

}  // namespace uper::cuda
