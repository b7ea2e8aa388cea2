#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "uper/core/uncertainty.h"
#include "uper/nn/cuda/head/head_kernels.h"
#include "uper/nn/loss_spec.h"

namespace uper {

// Loss, gradient and statistics of each sample on the GPU: nn/cpu/sample_step.h, with the same
// formulas. The pairs of a quantile loss are never formed (quantile_loss.cu).

// What one (sample, member) found out.
struct MemberFindings {
  double loss = 0;        // without weight and scale; 0 if it was not needed
  double share = 0;       // of the batch loss: scale * weight * loss, 0 for masked members
  double value = 0;       // Q of the online outputs
  double next_value = 0;  // of the target outputs
};

struct SampleCall {
  LossSpec loss;
  HeadShape shape;
  int batch = 1;

  // [part, batch, member, output], without bias.
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
  MemberFindings* members = nullptr;  // [batch, member]
};
void LaunchSamples(const SampleCall& call, cudaStream_t stream, Follow follow = Follow::kAfter);

struct StatisticsCall {
  // Of the same samples.
  SampleCall samples;
  // [batch, 2, member, output]: room for the quantiles of categorical heads, else null.
  float* quantiles = nullptr;
  double* td_error = nullptr;          // [batch]
  Uncertainty* uncertainty = nullptr;  // [batch]
};
void LaunchStatistics(const StatisticsCall& call, cudaStream_t stream);

}  // namespace uper
