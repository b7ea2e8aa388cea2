#pragma once

#include <span>

#include "uper/base/random.h"
#include "uper/nn/parameter_layout.h"

namespace uper {

// Every weight and every bias uniform in +-1/sqrt(fan_in), fan_in = inputs to one output unit (DQN
// Zoo, PyTorch's default). Draws in the order of the buffer: two words of the stream a parameter.
// REQUIRES: parameters.size() == layout.size().
void InitializeUniform(const ParameterLayout& layout, RandomStream& stream,
                       std::span<float> parameters);

// Weights orthogonal (Saxe et al. 2014), biases zero: the matrix [fan_in, outputs] of a layer is
// `gain` times the Q of a Gaussian matrix's QR decomposition (of its transpose if that is taller),
// so that its shorter side is orthonormal but for the gain. Members of an ensemble are separate
// matrices: of the head [hidden, action x output] each, of separate hidden layers [input, unit].
void InitializeOrthogonal(const NetworkSpec& spec, const ParameterLayout& layout, double gain,
                          RandomStream& stream, std::span<float> parameters);

}  // namespace uper
