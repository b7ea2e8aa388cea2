#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "uper/nn/layer_spec.h"

namespace uper {

// Where each tensor lies in the one buffer that holds all parameters of a network. Gradients and
// optimizer state are buffers of the same layout. MakeLayers() lists the tensors and their order.
class ParameterLayout {
 public:
  // Validates the spec.
  explicit ParameterLayout(const NetworkSpec& spec);

  // All layers, the head last.
  std::span<const LayerSpec> layers() const { return layers_; }
  // The layers before the head, the hidden layer last.
  std::span<const LayerSpec> torso() const { return layers().first(layers_.size() - 1); }
  const LayerSpec& head() const { return layers_.back(); }

  // The tensors of all layers, in the order of the buffer.
  std::span<const ParameterView> views() const { return views_; }
  // Number of parameters, and of floats in the buffer.
  std::size_t size() const { return size_; }
  // Throws Error(kInternal) when there is no view of that name.
  const ParameterView& Find(std::string_view name) const;

 private:
  std::vector<LayerSpec> layers_;
  std::vector<ParameterView> views_;
  std::size_t size_ = 0;
};

}  // namespace uper
