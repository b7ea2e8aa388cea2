#include "uper/nn/cpu/update_cost.h"

#include <variant>
#include <vector>

#include "uper/nn/parameter_layout.h"

namespace uper {
namespace {

constexpr double kFloat = sizeof(float);
// Of one parameter: moving averages, bias corrections folded into two constants, root, division.
constexpr double kAdamFlop = 12;
constexpr double kRmsPropFlop = 13;

// y = relu(x W + b) for one sample.
struct Layer {
  double multiply_adds = 0;
  double inputs = 0;  // numbers of a sample
  double outputs = 0;
  double weights = 0;
};

std::vector<Layer> Convolutions(const NetworkSpec& network) {
  const std::vector<ImageShape> pictures = network.Pictures();
  std::vector<Layer> layers;
  for (std::size_t i = 0; i < network.convolutions.size(); ++i) {
    const double kernel = network.convolutions[i].kernel;
    const double weights = kernel * kernel * pictures[i].channels * pictures[i + 1].channels;
    layers.push_back({.multiply_adds = weights * pictures[i + 1].height * pictures[i + 1].width,
                      .inputs = double(pictures[i].size()),
                      .outputs = double(pictures[i + 1].size()),
                      .weights = weights});
  }
  return layers;
}

std::vector<Layer> DenseLayers(const NetworkSpec& network) {
  std::vector<int> units = network.dense;
  units.push_back(network.hidden_total());
  std::vector<Layer> layers;
  double inputs = network.Pictures().back().size();
  for (const double outputs : units) {
    layers.push_back({.multiply_adds = inputs * outputs,
                      .inputs = inputs,
                      .outputs = outputs,
                      .weights = inputs * outputs});
    inputs = outputs;
  }
  return layers;
}

PhaseCost& operator+=(PhaseCost& sum, const PhaseCost& more) {
  sum.flop += more.flop;
  sum.bytes += more.bytes;
  return sum;
}

// One product of a layer: forward, or one of the two backward. All three touch input, output and
// weights (or a gradient of the same size) once.
PhaseCost Product(const Layer& layer, double batch) {
  return {.flop = 2 * batch * layer.multiply_adds,
          .bytes = kFloat * (batch * (layer.inputs + layer.outputs) + layer.weights)};
}

}  // namespace

std::array<PhaseCost, kStepParts> WorkOfStep(const LearnerSpec& spec, double learning) {
  std::array<PhaseCost, kStepParts> work{};
  const auto part = [&](UpdatePhase name) -> PhaseCost& {
    return work[static_cast<std::size_t>(name)];
  };
  const NetworkSpec& network = spec.network;
  const double batch = spec.batch;
  const int passes = spec.loss.double_q ? 3 : 2;
  const std::vector<Layer> convolutions = Convolutions(network);
  const std::vector<Layer> dense = DenseLayers(network);
  for (int pass = 0; pass < passes; ++pass) {
    for (const Layer& layer : convolutions) {
      part(UpdatePhase::kConvolutions) += Product(layer, batch);
    }
    for (const Layer& layer : dense) part(UpdatePhase::kDense) += Product(layer, batch);
  }

  // The head: [hidden unit, output] for every (action, member).
  const double members = network.members;
  const double blocks = members * network.actions;
  const double block = double(network.hidden_units) * network.outputs;
  const double rows = batch * members;  // (sample, member) pairs
  const double row_numbers = network.outputs + double(network.hidden_total()) / members;
  // Values need the mean over outputs alone, which is one column for every (action, member); a
  // categorical head has to make all outputs.
  const double columns = spec.loss.head == HeadKind::kCategorical ? network.outputs : 1;
  part(UpdatePhase::kTargetActions) = {
      .flop = 2 * batch * blocks * network.hidden_units * columns,
      .bytes = kFloat * (blocks * network.hidden_units * columns +
                         batch * (network.hidden_total() + blocks * columns))};
  part(UpdatePhase::kHead) = {.flop = 2 * 2 * rows * block,
                              .bytes = 2 * kFloat * (blocks * block + rows * row_numbers)};
  part(UpdatePhase::kSamples).bytes = 3 * kFloat * rows * network.outputs;
  part(UpdatePhase::kBackwardHead) = {
      .flop = 2 * learning * rows * block,
      .bytes = kFloat * (blocks * block + learning * rows * row_numbers)};

  for (std::size_t i = convolutions.empty() ? 1 : 0; i < dense.size(); ++i) {
    part(UpdatePhase::kBackwardInputs) += Product(dense[i], batch);
  }
  for (std::size_t i = 1; i < convolutions.size(); ++i) {
    part(UpdatePhase::kBackwardInputs) += Product(convolutions[i], batch);
  }
  for (const Layer& layer : convolutions)
    part(UpdatePhase::kBackwardWeights) += Product(layer, batch);
  for (const Layer& layer : dense) part(UpdatePhase::kBackwardWeights) += Product(layer, batch);

  // Reads and writes the parameter and two moments of each; the torso's gradient is read too.
  const double parameters = double(ParameterLayout(network).size());
  const bool adam = std::holds_alternative<AdamOptions>(spec.optimizer);
  part(UpdatePhase::kOptimizer) = {
      .flop = parameters * (adam ? kAdamFlop : kRmsPropFlop) + 2 * learning * rows * block,
      .bytes = kFloat * (6 * parameters + (parameters - blocks * block))};
  return work;
}

}  // namespace uper
