#include "uper/base/arithmetic.h"
#include "uper/nn/cuda/head/head_common.cuh"
#include "uper/nn/cuda/head/head_kernels.h"
#include "uper/nn/cuda/ptx/reductions.cuh"
#include "uper/nn/cuda/runtime/launch.cuh"

namespace uper::cuda {
namespace {

constexpr int kThreads = kHeadThreads;
constexpr int kWarps = kHeadWarps;

// One warp per (action, member, hidden unit).
__global__ void __launch_bounds__(kThreads)
    MemberMeanWeightsKernel(HeadShape s, const float* w, HeadMeanWeightPointers means) {
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
    means.member_weights[(static_cast<std::ptrdiff_t>(member) * s.actions + action) * s.hidden +
                         unit] = sum / static_cast<float>(s.outputs);
  }
}

__global__ void EnsembleMeanWeightsKernel(HeadShape s, HeadMeanWeightPointers means) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= s.actions * s.hidden_total()) return;
  const int action = i / s.hidden_total();
  const int unit = i % s.hidden_total() % s.hidden;
  const int first = s.separate_hidden ? i % s.hidden_total() / s.hidden : 0;
  const int last = s.separate_hidden ? first + 1 : s.members;
  float sum = 0;
  for (int k = first; k < last; ++k) {
    sum += means.member_weights[(k * s.actions + action) * s.hidden + unit];
  }
  means.ensemble_weights[i] = sum / static_cast<float>(s.members);
}

// One block per (member, action); the sums are those of an update.
__global__ void __launch_bounds__(kThreads)
    MeanBiasKernel(HeadShape s, const float* bias, HeadMeanWeightPointers means) {
  __shared__ float scratch[kWarpSize];
  const int member = static_cast<int>(blockIdx.x) / s.actions;
  const int action = static_cast<int>(blockIdx.x) % s.actions;
  const int outputs = s.shared_bias ? 1 : s.outputs;
  float sum = 0;
  for (int m = static_cast<int>(threadIdx.x); m < outputs; m += kThreads) {
    sum += BiasAt(s, bias, action, member, m);
  }
  sum = BlockSum(sum, scratch) / static_cast<float>(outputs);
  if (threadIdx.x == 0) means.member_bias[blockIdx.x] = sum;
}

void CheckLaunch(const char* what) { CheckCuda(cudaGetLastError(), what); }

}  // namespace

void LaunchHeadMeanWeights(const HeadShape& shape, const float* w, const float* bias,
                           const HeadMeanWeightPointers& mean_weights, cudaStream_t stream) {
  const int rows = shape.actions * shape.members * shape.hidden;
  MemberMeanWeightsKernel<<<CeilDiv(rows, kWarps), kThreads, 0, stream>>>(shape, w, mean_weights);
  CheckLaunch("mean weights of the head");
  const int entries = shape.hidden_total() * shape.actions;
  EnsembleMeanWeightsKernel<<<CeilDiv(entries, kThreads), kThreads, 0, stream>>>(shape,
                                                                                 mean_weights);
  CheckLaunch("mean weights over members");
  const int biases = shape.members * shape.actions;
  MeanBiasKernel<<<biases, kThreads, 0, stream>>>(shape, bias, mean_weights);
  CheckLaunch("means of the bias");
}

}  // namespace uper::cuda
