#pragma once

#include <span>

namespace uper {

// What importance weights are divided by.
enum class WeightNormalization {
  kNone,       // nothing
  kBatchMax,   // the largest weight of the batch (DQN Zoo)
  kBufferMax,  // the largest weight any item of the buffer could get
};

// w_i = (size * P_i)^(-importance_exponent), normalised as asked. `smallest_probability` is the
// smallest positive probability of any stored item; it is read for kBufferMax alone. The result of
// kBatchMax and kBufferMax lies in (0, 1], that of kNone is positive and finite. REQUIRES:
// probabilities in (0, 1], size >= 1, importance_exponent in [0, 1], weights.size() ==
// probabilities.size().
void ImportanceWeights(std::span<const double> probabilities, double size,
                       double importance_exponent, WeightNormalization normalization,
                       double smallest_probability, std::span<float> weights);

// (sum w)^2 / sum w^2: how many equally weighted samples a batch is worth; 0 for an empty batch.
double EffectiveSampleSize(std::span<const float> weights);

}  // namespace uper
