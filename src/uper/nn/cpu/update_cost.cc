#include "uper/nn/cpu/update_cost.h"

#include <variant>

#include "uper/nn/parameter_layout.h"

namespace uper::cpu {
namespace {

using PhaseCosts = std::array<PhaseCost, kUpdatePhases>;

constexpr double kFloat = sizeof(float);
// Per parameter: moving averages, bias corrections folded into two constants, root, division.
constexpr double kAdamFlop = 12;
constexpr double kRmsPropFlop = 13;

PhaseCost& operator+=(PhaseCost& sum, const PhaseCost& more) {
  sum.flop += more.flop;
  sum.bytes += more.bytes;
  return sum;
}

PhaseCost& At(PhaseCosts& costs, UpdatePhase phase) {
  return costs[static_cast<std::size_t>(phase)];
}

// One gemm of a layer: the forward pass, or one of the two of the backward pass. Each touches
// input, output and weights (or a gradient of the same size) once.
PhaseCost GemmCost(const LayerSpec& layer, double batch) {
  return {.flop = 2 * batch * layer.multiply_adds(),
          .bytes = kFloat * (batch * (double(layer.inputs()) + double(layer.outputs())) +
                             double(layer.weights.size()))};
}

void AddTorso(std::span<const LayerSpec> torso, int batch, int passes, PhaseCosts& costs) {
  for (const LayerSpec& layer : torso) {
    const PhaseCost gemm = GemmCost(layer, batch);
    const bool convolution = layer.kind == LayerKind::kConvolution;
    for (int pass = 0; pass < passes; ++pass) {
      At(costs, convolution ? UpdatePhase::kConvolutions : UpdatePhase::kDense) += gemm;
    }
    // The gradient with respect to the observation is not needed.
    if (&layer != &torso.front()) At(costs, UpdatePhase::kBackwardInputs) += gemm;
    At(costs, UpdatePhase::kBackwardWeights) += gemm;
  }
}

// The head has a block [hidden unit, output] for every (action, member).
void AddHead(const LearnerSpec& spec, double learning, PhaseCosts& costs) {
  const NetworkSpec& network = spec.network;
  const double batch = spec.batch;
  const double members = network.members;
  const double blocks = members * network.actions;
  const double block = double(network.hidden_units) * network.outputs;
  const double rows = batch * members;  // (sample, member) pairs
  const double row_numbers = network.outputs + double(network.hidden_total()) / members;
  // Action values need only the mean over outputs, one column for every (action, member). A
  // categorical head has to compute all outputs.
  const double columns = spec.loss.head == HeadKind::kCategorical ? network.outputs : 1;
  At(costs, UpdatePhase::kTargetActions) = {
      .flop = 2 * batch * blocks * network.hidden_units * columns,
      .bytes = kFloat * (blocks * network.hidden_units * columns +
                         batch * (network.hidden_total() + blocks * columns))};
  At(costs, UpdatePhase::kHead) = {.flop = 2 * 2 * rows * block,
                                   .bytes = 2 * kFloat * (blocks * block + rows * row_numbers)};
  At(costs, UpdatePhase::kSamples).bytes = 3 * kFloat * rows * network.outputs;
  At(costs, UpdatePhase::kBackwardHead) = {
      .flop = 2 * learning * rows * block,
      .bytes = kFloat * (blocks * block + learning * rows * row_numbers)};
}

// Reads and writes each parameter and its two moments, and reads the stored gradients. The gradient
// of the head's weights is computed here.
void AddOptimizer(const LearnerSpec& spec, const ParameterLayout& layout, double learning,
                  PhaseCosts& costs) {
  const double parameters = double(layout.size());
  const double head = double(layout.head().weights.size());
  const double pairs = double(spec.batch) * spec.network.members;
  const double block = double(spec.network.hidden_units) * spec.network.outputs;
  const bool adam = std::holds_alternative<AdamOptions>(spec.optimizer);
  At(costs, UpdatePhase::kOptimizer) = {
      .flop = parameters * (adam ? kAdamFlop : kRmsPropFlop) + 2 * learning * pairs * block,
      .bytes = kFloat * (6 * parameters + (parameters - head))};
}

}  // namespace

std::array<PhaseCost, kUpdatePhases> CostOfUpdate(const LearnerSpec& spec, double learning) {
  const ParameterLayout layout(spec.network);
  PhaseCosts costs{};
  AddTorso(layout.torso(), spec.batch, spec.loss.double_q ? 3 : 2, costs);
  AddHead(spec, learning, costs);
  AddOptimizer(spec, layout, learning, costs);
  return costs;
}

}  // namespace uper::cpu
