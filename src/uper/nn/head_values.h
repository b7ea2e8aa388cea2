#pragma once

#include <span>

#include "uper/nn/loss_spec.h"

namespace uper {

// Q of one member from its outputs: the value itself, the mean of the quantiles, or the expected
// atom.
double MemberValue(const LossSpec& spec, std::span<const float> outputs);

// probabilities = softmax(logits), stable for any finite logits. REQUIRES: equal sizes, not empty.
void Softmax(std::span<const float> logits, std::span<float> probabilities);

}  // namespace uper
