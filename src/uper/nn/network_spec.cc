#include "uper/nn/network_spec.h"

#include <cmath>
#include <limits>
#include <string>

#include "uper/base/check.h"

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

std::string LayerName(const char* kind, std::size_t index) {
  return kind + std::to_string(index + 1);
}

void ValidateInput(const InputSpec& input) {
  RequirePositive(input.height, "input.height");
  RequirePositive(input.width, "input.width");
  RequirePositive(input.channels, "input.channels");
  if (!std::isfinite(input.scale) || input.scale <= 0) Reject("input.scale must be positive");
  RequireIndexable(double{1} * input.height * input.width * input.channels, "the observation");
}

ImageShape OutputShape(const ImageShape& in, const ConvolutionSpec& layer) {
  return {.height = (in.height - layer.kernel) / layer.stride + 1,
          .width = (in.width - layer.kernel) / layer.stride + 1,
          .channels = layer.filters};
}

void ValidateConvolutions(const NetworkSpec& spec) {
  ImageShape in{spec.input.height, spec.input.width, spec.input.channels};
  for (std::size_t i = 0; i < spec.convolutions.size(); ++i) {
    const ConvolutionSpec& layer = spec.convolutions[i];
    const std::string name = LayerName("convolution ", i);
    RequirePositive(layer.filters, name + " filters");
    RequirePositive(layer.kernel, name + " kernel");
    RequirePositive(layer.stride, name + " stride");
    if (layer.kernel > in.height || layer.kernel > in.width) {
      Reject(name + ": kernel " + std::to_string(layer.kernel) + " does not fit its input of " +
             std::to_string(in.height) + " x " + std::to_string(in.width));
    }
    RequireIndexable(double{1} * layer.kernel * layer.kernel * in.channels * layer.filters, name);
    in = OutputShape(in, layer);
    RequireIndexable(double{1} * in.height * in.width * in.channels, name + " output");
  }
}

}  // namespace

void NetworkSpec::Validate() const {
  ValidateInput(input);
  ValidateConvolutions(*this);
  for (std::size_t i = 0; i < dense.size(); ++i) {
    RequirePositive(dense[i], LayerName("dense layer ", i) + " units");
  }
  RequirePositive(hidden_units, "hidden_units");
  RequirePositive(actions, "actions");
  RequirePositive(members, "members");
  RequirePositive(outputs, "outputs");
  double inputs = Pictures().back().size();
  double parameters = 0;
  for (const int units : dense) {
    parameters += (inputs + 1) * units;
    inputs = units;
  }
  parameters += (inputs + 1) * hidden_units * (separate_hidden ? members : 1);
  parameters += (double{1} + hidden_units) * actions * members * outputs;
  RequireIndexable(parameters, "the number of parameters");
}

std::vector<ImageShape> NetworkSpec::Pictures() const {
  std::vector<ImageShape> pictures{{input.height, input.width, input.channels}};
  for (const ConvolutionSpec& layer : convolutions) {
    pictures.push_back(OutputShape(pictures.back(), layer));
  }
  return pictures;
}

int NetworkSpec::torso_outputs() const {
  return dense.empty() ? Pictures().back().size() : dense.back();
}

NetworkSpec NatureNetwork(const HeadSize& head) {
  return {.input = {.height = 84,
                    .width = 84,
                    .channels = 4,
                    .type = InputType::kUint8,
                    .layout = InputLayout::kPlanes,
                    .scale = 1.0F / 255.0F},
          .convolutions = {{32, 8, 4}, {64, 4, 2}, {64, 3, 1}},
          .hidden_units = 512,
          .actions = head.actions,
          .members = head.members,
          .outputs = head.outputs};
}

NetworkSpec MinatarNetwork(int channels, const HeadSize& head) {
  return {.input = {.height = 10, .width = 10, .channels = channels, .type = InputType::kUint8},
          .convolutions = {{16, 3, 1}},
          .hidden_units = 128,
          .actions = head.actions,
          .members = head.members,
          .outputs = head.outputs};
}

NetworkSpec MlpNetwork(int inputs, const std::vector<int>& units, const HeadSize& head) {
  UPER_CHECK(!units.empty(), "an mlp needs at least its hidden layer");
  return {.input = {.channels = inputs},
          .dense = {units.begin(), units.end() - 1},
          .hidden_units = units.back(),
          .actions = head.actions,
          .members = head.members,
          .outputs = head.outputs};
}

}  // namespace uper
