#include "uper/core/importance_weights.h"

#include <algorithm>
#include <cstddef>

#include "uper/base/check.h"

namespace uper {
namespace {

// Probabilities are quotients of sums, so rounding can put that of a certain item slightly above 1.
constexpr double kLargestProbability = 1 + 1e-9;

// The probability of an item with weight 1.
double UnitProbability(std::span<const double> probabilities, double size,
                       WeightNormalization normalization, double smallest_probability) {
  switch (normalization) {
    case WeightNormalization::kNone:
      return 1 / size;
    case WeightNormalization::kBatchMax:
      return *std::min_element(probabilities.begin(), probabilities.end());
    case WeightNormalization::kBufferMax:
      return smallest_probability;
  }
  UPER_CHECK(false, "not a normalization");
}

}  // namespace

void ImportanceWeights(std::span<const double> probabilities, double size,
                       double importance_exponent, WeightNormalization normalization,
                       double smallest_probability, std::span<float> weights) {
  UPER_CHECK(weights.size() == probabilities.size(), "one weight per probability");
  UPER_CHECK(size >= 1, "the buffer holds at least one item");
  UPER_CHECK(importance_exponent >= 0 && importance_exponent <= 1, "the exponent is in [0, 1]");
  if (probabilities.empty()) return;
  const double unit = UnitProbability(probabilities, size, normalization, smallest_probability);
  UPER_CHECK(unit > 0, "probabilities are positive");
  for (std::size_t i = 0; i < probabilities.size(); ++i) {
    UPER_CHECK(probabilities[i] > 0 && probabilities[i] <= kLargestProbability,
               "probabilities are in (0, 1]");
    weights[i] =
        RelativeWeight(probabilities[i], unit, importance_exponent, LargestWeight(normalization));
  }
}

double EffectiveSampleSize(std::span<const float> weights) {
  double sum = 0;
  double squares = 0;
  for (const float weight : weights) {
    const double w = weight;
    sum += w;
    squares += w * w;
  }
  return squares == 0 ? 0 : sum * sum / squares;
}

}  // namespace uper
