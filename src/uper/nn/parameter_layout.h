#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "uper/nn/network_spec.h"

namespace uper {

// One named tensor inside the flat parameter buffer, in row-major order of `shape`.
struct ParameterView {
  std::string name;
  std::size_t offset = 0;  // in floats
  std::vector<int> shape;
  int fan_in = 1;  // inputs to one output unit (of the layer, so a bias has its weights' fan-in)

  std::size_t size() const;
};

// Where each tensor lies in the one buffer that holds all parameters of a network (and in those of
// its gradient and optimiser state). Tensors follow each other without gaps, in this order:
//
//   conv<i>/w   [kernel row, kernel column, input channel, filter]      i = 1, 2, ...
//   conv<i>/b   [filter]
//   dense<i>/w  [input, unit]
//   dense<i>/b  [unit]
//   hidden/w    [input, unit], or [input, member, unit] when separate
//   hidden/b    [unit], or [member, unit] when separate
//   head/w      [action, member, hidden unit, output]
//   head/b      [action, member, output], or [1] when shared
//
// The last index is the output of the layer, so that kernels vectorise over outputs and every
// output is one chain of additions. The input of the first dense layer is the last picture in
// (height, width, channel) order. head/w keeps the block [hidden, output] of one (action, member)
// contiguous: only the blocks of taken and greedy actions are read in a step.
class ParameterLayout {
 public:
  // Validates the spec.
  explicit ParameterLayout(const NetworkSpec& spec);

  std::span<const ParameterView> views() const { return views_; }
  // Number of parameters, and of floats in the buffer.
  std::size_t size() const { return size_; }
  // Throws Error(kInternal) when there is no view of that name.
  const ParameterView& Find(std::string_view name) const;

 private:
  void Add(std::string name, std::vector<int> shape, int fan_in);

  std::vector<ParameterView> views_;
  std::size_t size_ = 0;
};

}  // namespace uper
