#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "uper/core/uncertainty.h"
#include "uper/nn/loss_spec.h"

namespace uper::cpu {

// Loss, gradient and statistics of one sample, from what the networks put out for it. Everything
// that distinguishes the agents' losses is here; networks only multiply matrices.

// Outputs are [member, output].
struct SampleInputs {
  std::span<const float> online;  // theta(s_tm1, a_tm1)
  std::span<const float> target;  // theta'(s_t, a*) of the target network, a* chosen already
  float r_t = 0;
  float discount_t = 0;
  float weight = 1;                        // importance weight
  std::uint64_t mask = ~std::uint64_t{0};  // bit k: member k learns from the sample
  double scale = 1;                        // 1 / number of terms in the batch's mean
};

struct SampleOutputs {
  double loss = 0;      // this sample's share of the batch loss: scale * weight * sum of losses
  double td_error = 0;  // as LossSpec::td_priority says
  Uncertainty uncertainty;
};

// Reusable memory of one thread.
struct LossScratch {
  explicit LossScratch(EnsembleShape shape);

  std::vector<float> targets;        // [output]: of one member
  std::vector<double> online_means;  // [member]
  std::vector<double> target_means;
  std::vector<double> columns;       // [output]
  std::vector<float> online_values;  // [member, output]: probabilities or quantiles
  std::vector<float> target_values;
  std::vector<float> online_quantiles;  // [member, output]: of categorical members
  std::vector<float> target_quantiles;
};

// d_online [member, output] receives the derivative of the batch loss; 0 for masked members.
// O(members * outputs^2) for quantiles, O(members * outputs) otherwise; allocates nothing.
SampleOutputs ComputeSampleLoss(const LossSpec& spec, EnsembleShape shape,
                                const SampleInputs& inputs, LossScratch& scratch,
                                std::span<float> d_online);

}  // namespace uper::cpu
