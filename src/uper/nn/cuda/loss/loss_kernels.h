#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "uper/core/uncertainty.h"
#include "uper/nn/cuda/head/head_kernels.h"
#include "uper/nn/loss_spec.h"

namespace uper::cuda {

// Loss, gradient and statistics of each sample on the GPU, with the formulas of
// nn/cpu/sample_loss.h. The pairs of a quantile loss are never formed (quantile_loss.cu).

// The loss and the values of one (sample, member).
struct MemberLoss {
  double loss = 0;        // without weight and scale; 0 if it was not needed
  double share = 0;       // its term of the batch loss: scale * weight * loss; 0 for masked members
  double value = 0;       // Q according to the online outputs
  double next_value = 0;  // Q according to the target outputs
};

struct LossCall {
  LossSpec loss;
  HeadShape shape;
  int batch = 1;

  // [part, batch, member, output], without the bias.
  const float* online_parts = nullptr;
  const float* target_parts = nullptr;
  const float* online_bias = nullptr;
  const float* target_bias = nullptr;
  const int* actions = nullptr;         // [batch]
  const int* target_actions = nullptr;  // [batch, member]
  const float* r_t = nullptr;
  const float* discount_t = nullptr;
  const float* weights = nullptr;
  const std::uint64_t* masks = nullptr;

  // [batch, member, output]: outputs, or probabilities of categorical heads.
  float* online = nullptr;
  float* target = nullptr;
  float* d_out = nullptr;
  MemberLoss* members = nullptr;  // [batch, member]
};
void LaunchLoss(const LossCall& call, cudaStream_t stream,
                LaunchOrder order = LaunchOrder::kSerial);

struct StatisticsCall {
  // The loss of the same samples.
  LossCall samples;
  // [batch, 2, member, output]: scratch for the quantiles of categorical heads, else null.
  float* quantiles = nullptr;
  double* td_error = nullptr;          // [batch]
  Uncertainty* uncertainty = nullptr;  // [batch]
};
void LaunchStatistics(const StatisticsCall& call, cudaStream_t stream);

}  // namespace uper::cuda
