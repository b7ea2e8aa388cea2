#include "uper/nn/head_values.h"

#include <algorithm>
#include <cmath>

namespace uper {
namespace {

double Mean(std::span<const float> values) {
  double sum = 0;
  for (const float value : values) sum += double{value};
  return sum / static_cast<double>(values.size());
}

}  // namespace

double MemberValue(const LossSpec& spec, std::span<const float> outputs) {
  if (spec.head != HeadKind::kCategorical) return Mean(outputs);
  double largest = outputs[0];
  for (const float logit : outputs) largest = std::max(largest, double{logit});
  double sum = 0;
  double weighted = 0;
  for (std::size_t j = 0; j < outputs.size(); ++j) {
    const double mass = std::exp(double{outputs[j]} - largest);
    sum += mass;
    weighted += mass * spec.support.Atom(j);
  }
  return weighted / sum;
}

void Softmax(std::span<const float> logits, std::span<float> probabilities) {
  const float largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (std::size_t j = 0; j < logits.size(); ++j) {
    probabilities[j] = std::exp(logits[j] - largest);
    sum += double{probabilities[j]};
  }
  for (float& probability : probabilities) {
    probability = static_cast<float>(double{probability} / sum);
  }
}

}  // namespace uper
