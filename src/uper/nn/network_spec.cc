#include "uper/nn/network_spec.h"

#include "uper/base/check.h"
#include "uper/nn/layer_spec.h"

namespace uper {

void NetworkSpec::Validate() const { MakeLayers(*this); }

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
