#pragma once

#include "uper/nn/cuda/loss/loss_kernels.h"
#include "uper/nn/cuda/ptx/reductions.cuh"
#include "uper/nn/cuda/runtime/launch_order.h"

namespace uper::cuda {

// Functions that the kernels of the losses share.

__device__ inline bool Learns(const LossCall& call, int b, int k) {
  return (call.masks[b] >> k & 1) != 0;
}

// 1 / number of terms in the batch's mean. Every warp computes it alone.
__device__ inline double SampleScale(const LossCall& call) {
  // Compared with kMean: this gives the machine code of a bool.
  if (call.loss.member_weighting != MemberWeighting::kMean) return 1.0 / call.batch;
  const std::uint64_t members = ~std::uint64_t{0} >> (64 - call.shape.members);
  int terms = 0;
  for (int b = static_cast<int>(threadIdx.x) % kWarpSize; b < call.batch; b += kWarpSize) {
    terms += __popcll(call.masks[b] & members);
  }
  terms = WarpSum(terms);
  return 1.0 / (terms > 1 ? terms : 1);
}

// One output from its parts, at = (b * members + k) * outputs + j.
__device__ inline float SumOfParts(const LossCall& call, const float* parts, const float* bias,
                                   int action, int k, int j, std::ptrdiff_t at) {
  const HeadShape& s = call.shape;
  const std::ptrdiff_t step = static_cast<std::ptrdiff_t>(call.batch) * s.members * s.outputs;
  float sum = __ldg(bias + (s.shared_bias ? 0 : (action * s.members + k) * s.outputs + j));
#pragma unroll
  for (int part = 0; part < kHeadParts; ++part) sum += __ldg(parts + part * step + at);
  return sum;
}

struct alignas(8) Outputs {
  float online;
  float target;
};
__device__ inline Outputs OutputsAt(const LossCall& call, int b, int k, int j) {
  const std::ptrdiff_t row = static_cast<std::ptrdiff_t>(b) * call.shape.members + k;
  const std::ptrdiff_t at = row * call.shape.outputs + j;
  return {
      SumOfParts(call, call.online_parts, call.online_bias, call.actions[b], k, j, at),
      SumOfParts(call, call.target_parts, call.target_bias, call.target_actions[row], k, j, at)};
}

__device__ inline MemberLoss StatisticsOf(const LossCall& call, int b, bool learns, double scale,
                                          double loss, double value, double next_value) {
  return {.loss = loss,
          .share = learns ? scale * static_cast<double>(call.weights[b]) * loss : 0,
          .value = value,
          .next_value = next_value};
}

// LaunchLoss() for quantile heads.
void LaunchQuantileSamples(const LossCall& call, cudaStream_t stream, LaunchOrder order);

}  // namespace uper::cuda
