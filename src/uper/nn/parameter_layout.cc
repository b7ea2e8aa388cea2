#include "uper/nn/parameter_layout.h"

#include <string>

#include "uper/base/check.h"

namespace uper {

ParameterLayout::ParameterLayout(const NetworkSpec& spec) : layers_(MakeLayers(spec)) {
  for (const LayerSpec& layer : layers_) {
    views_.push_back(layer.weights);
    views_.push_back(layer.bias);
    size_ += layer.weights.size() + layer.bias.size();
  }
}

const ParameterView& ParameterLayout::Find(std::string_view name) const {
  for (const ParameterView& view : views_) {
    if (view.name == name) return view;
  }
  throw Error(ErrorKind::kInternal, "no parameter tensor is called " + std::string(name));
}

}  // namespace uper
