#pragma once

#include <cmath>
#include <limits>
#include <span>

#include "uper/core/host_device.h"

namespace uper {

// What importance weights are divided by.
enum class WeightNormalization {
  kNone,       // nothing
  kBatchMax,   // the largest weight of the batch (DQN Zoo)
  kBufferMax,  // the largest weight any item of the buffer could get
};

inline constexpr float kSmallestWeight = std::numeric_limits<float>::min();
inline constexpr float kLargestWeight = std::numeric_limits<float>::max();

// The weight of an item that is drawn with `probability`, relative to one of `unit_probability`,
// whose weight is 1: (N P_i)^-beta / (N P_unit)^-beta = (P_unit / P_i)^beta, so that no power can
// overflow. Kept within [smallest normal float, largest].
UPER_HOST_DEVICE inline float RelativeWeight(double probability, double unit_probability,
                                             double importance_exponent, double largest) {
  const double weight = std::pow(unit_probability / probability, importance_exponent);
  const double smallest = static_cast<double>(kSmallestWeight);
  return static_cast<float>(weight < smallest ? smallest : largest < weight ? largest : weight);
}

// The largest weight that a normalisation hands out.
UPER_HOST_DEVICE inline double LargestWeight(WeightNormalization normalization) {
  return normalization == WeightNormalization::kNone ? static_cast<double>(kLargestWeight) : 1.0;
}

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
