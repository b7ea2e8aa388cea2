#pragma once

#include <span>

#include "uper/base/random.h"
#include "uper/nn/parameter_layout.h"

namespace uper {

// Every weight and every bias is uniform in +-1/sqrt(fan_in), fan_in = inputs to one output unit
// (DQN Zoo, and the default of PyTorch). Draws in the order of the buffer, two words of the stream
// per parameter. REQUIRES: parameters.size() == layout.size().
void InitializeUniform(const ParameterLayout& layout, RandomStream& stream,
                       std::span<float> parameters);

// Weights are orthogonal (Saxe et al. 2014), biases zero. The matrix [fan_in, outputs] of a layer
// is `gain` times the Q of the QR decomposition of a Gaussian matrix. So its shorter side is
// orthonormal up to the gain. (A tall matrix is decomposed as its transpose.) Each member of an
// ensemble has its own matrix: [hidden, action x output] in the head, [input, unit] in separate
// hidden layers.
void InitializeOrthogonal(const ParameterLayout& layout, double gain, RandomStream& stream,
                          std::span<float> parameters);

}  // namespace uper
