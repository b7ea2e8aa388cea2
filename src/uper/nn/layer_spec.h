#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "uper/nn/network_spec.h"

namespace uper {

// One named tensor inside the flat parameter buffer, in row-major order of `shape`.
struct ParameterView {
  std::string name;
  std::size_t offset = 0;  // in floats
  std::vector<int> shape;
  int fan_in = 1;  // inputs to one output unit of the layer; a bias has the fan-in of its weights

  std::size_t size() const;
};

enum class LayerKind { kConvolution, kDense, kHidden, kHead };

// One layer of a network. All kinds except the head end with a ReLU.
struct LayerSpec {
  LayerKind kind = LayerKind::kDense;
  std::string name;  // "conv<i>" or "dense<i>" with i = 1, 2, ..., "hidden", or "head"
  // Input and output of one sample. A vector of n numbers, flattened or not, is 1 x 1 x n.
  ImageShape in;
  ImageShape out;
  ConvolutionSpec convolution;  // only of a convolution
  int members = 1;              // sets of weights in the layer: K with one set per member, else 1
  ParameterView weights;        // called "<name>/w"; the bias "<name>/b" follows it in the buffer
  ParameterView bias;

  int inputs() const { return in.size(); }
  int outputs() const { return out.size(); }
  int positions() const {
    return out.height * out.width;
  }  // where a convolution applies its kernel
  // Multiply-adds of one forward pass for one sample.
  double multiply_adds() const { return static_cast<double>(weights.size()) * positions(); }
};

// The layers of a network in the order of the forward pass: convolutions, dense layers, the hidden
// layer, the head. Tensors have these shapes and follow each other without gaps in this order:
//
//   conv<i>/w   [kernel row, kernel column, input channel, filter]
//   conv<i>/b   [filter]
//   dense<i>/w  [input, unit]
//   dense<i>/b  [unit]
//   hidden/w    [input, unit], or [input, member, unit] when separate
//   hidden/b    [unit], or [member, unit] when separate
//   head/w      [action, member, hidden unit, output]
//   head/b      [action, member, output], or [1] when shared
//
// The last index is the output of the layer: kernels vectorize over outputs, and every output is
// one chain of additions. The first dense layer reads the last feature map in (height, width,
// channel) order. In head/w the block [hidden unit, output] of one (action, member) is contiguous:
// an update reads only the blocks of taken and greedy actions.
//
// Only this function decides which layers a network has; all other code walks the list. Throws
// Error(kUsage) as NetworkSpec::Validate() does.
std::vector<LayerSpec> MakeLayers(const NetworkSpec& spec);

}  // namespace uper
