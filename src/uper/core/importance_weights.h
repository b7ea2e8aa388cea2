#pragma once

#include <cmath>
#include <limits>
#include <span>

#include "uper/core/host_device.h"

namespace uper {

// The divisor of importance weights.
enum class WeightNormalization {
  kNone,       // 1
  kBatchMax,   // the largest weight of the batch (DQN Zoo)
  kBufferMax,  // the largest weight any item of the buffer could get
};

inline constexpr float kSmallestWeight = std::numeric_limits<float>::min();
inline constexpr float kLargestWeight = std::numeric_limits<float>::max();

// The weight of an item that is drawn with `probability`. An item drawn with `unit_probability` has
// weight 1: (N P_i)^-beta / (N P_unit)^-beta = (P_unit / P_i)^beta, in which no power can overflow.
// The result is limited to [smallest normal float, largest].
UPER_HOST_DEVICE inline float RelativeWeight(double probability, double unit_probability,
                                             double importance_exponent, double largest) {
  const double weight = std::pow(unit_probability / probability, importance_exponent);
  const double smallest = static_cast<double>(kSmallestWeight);
  return static_cast<float>(weight < smallest ? smallest : largest < weight ? largest : weight);
}

// The largest weight that a normalization returns.
UPER_HOST_DEVICE inline double LargestWeight(WeightNormalization normalization) {
  return normalization == WeightNormalization::kNone ? static_cast<double>(kLargestWeight) : 1.0;
}

// w_i = (size * P_i)^(-importance_exponent), divided by what `normalization` says.
// `smallest_probability` is the smallest positive probability of any stored item; only kBufferMax
// reads it. Weights are in (0, 1] for kBatchMax and kBufferMax, and positive and finite for kNone.
// REQUIRES: probabilities in (0, 1], size >= 1, importance_exponent in [0, 1], weights.size() ==
// probabilities.size().
void ImportanceWeights(std::span<const double> probabilities, double size,
                       double importance_exponent, WeightNormalization normalization,
                       double smallest_probability, std::span<float> weights);

// (sum w)^2 / sum w^2: the number of equally weighted samples that a batch is worth; 0 for an empty
// batch.
double EffectiveSampleSize(std::span<const float> weights);

}  // namespace uper
