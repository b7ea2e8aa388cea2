#include "uper/nn/layer_spec.h"

#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <string>
#include <utility>

#include "uper/base/error.h"

namespace uper {
namespace {

[[noreturn]] void Reject(const std::string& message) {
  throw Error(ErrorKind::kUsage, "network: " + message);
}

void RequirePositive(int value, const std::string& field) {
  if (value < 1) Reject(field + " must be at least 1, got " + std::to_string(value));
}

// Offsets within one layer are computed with 32-bit integers.
void RequireIndexable(double elements, const std::string& what) {
  if (elements > std::numeric_limits<std::int32_t>::max()) Reject(what + " is too large");
}

void CheckInput(const InputSpec& input) {
  RequirePositive(input.height, "input.height");
  RequirePositive(input.width, "input.width");
  RequirePositive(input.channels, "input.channels");
  if (!std::isfinite(input.scale) || input.scale <= 0) Reject("input.scale must be positive");
  RequireIndexable(double{1} * input.height * input.width * input.channels, "the observation");
}

void CheckConvolution(const ConvolutionSpec& layer, const ImageShape& in, const std::string& name) {
  RequirePositive(layer.filters, name + " filters");
  RequirePositive(layer.kernel, name + " kernel");
  RequirePositive(layer.stride, name + " stride");
  if (layer.kernel > in.height || layer.kernel > in.width) {
    Reject(name + ": kernel " + std::to_string(layer.kernel) + " does not fit its input of " +
           std::to_string(in.height) + " x " + std::to_string(in.width));
  }
  RequireIndexable(double{1} * layer.kernel * layer.kernel * in.channels * layer.filters, name);
}

double Elements(const std::vector<int>& shape) {
  return std::accumulate(shape.begin(), shape.end(), double{1}, std::multiplies<>());
}

// The layers so far, and the beginning of the next one.
struct LayerList {
  std::vector<LayerSpec> layers;
  ImageShape shape;        // output of the last layer
  std::size_t offset = 0;  // end of its parameters
};

// Shapes of the two tensors of a layer.
struct TensorShapes {
  std::vector<int> weights;
  std::vector<int> bias;
};

// Appends a layer; fills in its input and its tensors. The caller has set everything else.
void Add(LayerList& list, LayerSpec layer, int fan_in, const TensorShapes& tensors) {
  RequireIndexable(
      static_cast<double>(list.offset) + Elements(tensors.weights) + Elements(tensors.bias),
      "the number of parameters");
  const bool convolution = layer.kind == LayerKind::kConvolution;
  layer.in = convolution ? list.shape : ImageShape{.channels = list.shape.size()};
  layer.weights = {layer.name + "/w", list.offset, tensors.weights, fan_in};
  list.offset += layer.weights.size();
  layer.bias = {layer.name + "/b", list.offset, tensors.bias, fan_in};
  list.offset += layer.bias.size();
  list.shape = layer.out;
  list.layers.push_back(std::move(layer));
}

void AddConvolution(LayerList& list, const ConvolutionSpec& convolution, int number) {
  const ImageShape in = list.shape;
  const std::string title = "convolution " + std::to_string(number);
  CheckConvolution(convolution, in, title);
  const int kernel = convolution.kernel;
  const int filters = convolution.filters;
  LayerSpec layer{.kind = LayerKind::kConvolution,
                  .name = "conv" + std::to_string(number),
                  .out = {.height = (in.height - kernel) / convolution.stride + 1,
                          .width = (in.width - kernel) / convolution.stride + 1,
                          .channels = filters},
                  .convolution = convolution};
  RequireIndexable(double{1} * layer.out.height * layer.out.width * filters, title + " output");
  Add(list, std::move(layer), kernel * kernel * in.channels,
      {{kernel, kernel, in.channels, filters}, {filters}});
}

void AddDense(LayerList& list, int units, int number) {
  RequirePositive(units, "dense layer " + std::to_string(number) + " units");
  const int inputs = list.shape.size();
  Add(list, {.name = "dense" + std::to_string(number), .out = {.channels = units}}, inputs,
      {{inputs, units}, {units}});
}

void AddHidden(LayerList& list, const NetworkSpec& spec) {
  RequirePositive(spec.hidden_units, "hidden_units");
  RequirePositive(spec.members, "members");
  RequireIndexable(double{1} * spec.members * spec.hidden_units, "the hidden layer");
  const int inputs = list.shape.size();
  const int units = spec.hidden_units;
  LayerSpec layer{.kind = LayerKind::kHidden,
                  .name = "hidden",
                  .out = {.channels = spec.hidden_total()},
                  .members = spec.separate_hidden ? spec.members : 1};
  TensorShapes tensors{{inputs, units}, {units}};
  if (spec.separate_hidden) tensors = {{inputs, spec.members, units}, {spec.members, units}};
  Add(list, std::move(layer), inputs, tensors);
}

void AddHead(LayerList& list, const NetworkSpec& spec) {
  RequirePositive(spec.actions, "actions");
  RequirePositive(spec.outputs, "outputs");
  const int units = spec.hidden_units;
  const TensorShapes tensors{{spec.actions, spec.members, units, spec.outputs},
                             spec.shared_output_bias
                                 ? std::vector{1}
                                 : std::vector{spec.actions, spec.members, spec.outputs}};
  RequireIndexable(Elements(tensors.weights), "the number of parameters");
  Add(list,
      {.kind = LayerKind::kHead,
       .name = "head",
       .out = {.channels = spec.actions * spec.member_outputs()},
       .members = spec.members},
      units, tensors);
}

}  // namespace

std::size_t ParameterView::size() const {
  return std::accumulate(shape.begin(), shape.end(), std::size_t{1}, std::multiplies<>());
}

std::vector<LayerSpec> MakeLayers(const NetworkSpec& spec) {
  CheckInput(spec.input);
  LayerList list{.shape = spec.input.shape()};
  int number = 0;
  for (const ConvolutionSpec& convolution : spec.convolutions) {
    AddConvolution(list, convolution, ++number);
  }
  number = 0;
  for (const int units : spec.dense) AddDense(list, units, ++number);
  AddHidden(list, spec);
  AddHead(list, spec);
  return std::move(list.layers);
}

}  // namespace uper
