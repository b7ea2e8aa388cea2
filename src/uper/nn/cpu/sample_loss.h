#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "uper/core/uncertainty.h"
#include "uper/nn/loss_spec.h"

namespace uper::cpu {

// Loss, gradient and statistics of one sample, from the outputs of the networks. All differences
// between the losses of the agents are here; networks only multiply matrices.

// Outputs are [member, output].
struct SampleInputs {
  std::span<const float> online;  // theta(s_tm1, a_tm1)
  std::span<const float> target;  // theta'(s_t, a*) of the target network, for the chosen a*
  float r_t = 0;
  float discount_t = 0;
  float weight = 1;                        // importance weight
  std::uint64_t mask = ~std::uint64_t{0};  // bit k: member k learns from the sample
  double scale = 1;                        // 1 / number of terms in the mean over the batch
};

struct SampleOutputs {
  double loss = 0;      // contribution to the loss of the batch: scale * weight * sum of losses
  double td_error = 0;  // as LossSpec::td_priority says
  Uncertainty uncertainty;
};

// Scratch memory of one thread.
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

// Writes the derivative of the batch loss to d_online [member, output]; 0 for masked members.
// O(members * outputs^2) for quantiles, O(members * outputs) otherwise; allocates nothing.
SampleOutputs ComputeSampleLoss(const LossSpec& spec, EnsembleShape shape,
                                const SampleInputs& inputs, LossScratch& scratch,
                                std::span<float> d_online);

}  // namespace uper::cpu
