#include "uper/nn/parameter_layout.h"

#include <functional>
#include <numeric>

#include "uper/base/check.h"

namespace uper {

std::size_t ParameterView::size() const {
  return std::accumulate(shape.begin(), shape.end(), std::size_t{1}, std::multiplies<>());
}

ParameterLayout::ParameterLayout(const NetworkSpec& spec) {
  spec.Validate();
  const std::vector<ImageShape> pictures = spec.Pictures();
  for (std::size_t i = 0; i < spec.convolutions.size(); ++i) {
    const ConvolutionSpec& layer = spec.convolutions[i];
    const std::string name = "conv" + std::to_string(i + 1);
    const int fan_in = layer.kernel * layer.kernel * pictures[i].channels;
    Add(name + "/w", {layer.kernel, layer.kernel, pictures[i].channels, layer.filters}, fan_in);
    Add(name + "/b", {layer.filters}, fan_in);
  }
  int inputs = pictures.back().size();
  for (std::size_t i = 0; i < spec.dense.size(); ++i) {
    const std::string name = "dense" + std::to_string(i + 1);
    Add(name + "/w", {inputs, spec.dense[i]}, inputs);
    Add(name + "/b", {spec.dense[i]}, inputs);
    inputs = spec.dense[i];
  }
  const int units = spec.hidden_units;
  if (spec.separate_hidden) {
    Add("hidden/w", {inputs, spec.members, units}, inputs);
    Add("hidden/b", {spec.members, units}, inputs);
  } else {
    Add("hidden/w", {inputs, units}, inputs);
    Add("hidden/b", {units}, inputs);
  }
  Add("head/w", {spec.actions, spec.members, units, spec.outputs}, units);
  if (spec.shared_output_bias) {
    Add("head/b", {1}, units);
  } else {
    Add("head/b", {spec.actions, spec.members, spec.outputs}, units);
  }
}

const ParameterView& ParameterLayout::Find(std::string_view name) const {
  for (const ParameterView& view : views_) {
    if (view.name == name) return view;
  }
  throw Error(ErrorKind::kInternal, "no parameter tensor is called " + std::string(name));
}

void ParameterLayout::Add(std::string name, std::vector<int> shape, int fan_in) {
  views_.push_back({std::move(name), size_, std::move(shape), fan_in});
  size_ += views_.back().size();
}

}  // namespace uper
