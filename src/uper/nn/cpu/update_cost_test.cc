#include "uper/nn/cpu/update_cost.h"

#include <gtest/gtest.h>

namespace uper::cpu {
namespace {

PhaseCost Of(const std::array<PhaseCost, kUpdatePhases>& costs, UpdatePhase phase) {
  return costs[static_cast<std::size_t>(phase)];
}

// MinAtar's network by hand: 10 x 10 x 4 -> 8 x 8 x 16 (3 x 3) -> 128 -> 6 actions, 10 x 51.
TEST(UpdateCostTest, MinatarByHand) {
  const LearnerSpec spec{.network = MinatarNetwork(4, {.actions = 6, .members = 10, .outputs = 51}),
                         .loss = {.head = HeadKind::kQuantile},
                         .batch = 32};
  const auto costs = CostOfUpdate(spec, 0.5);
  const double convolution = 2 * 32 * 64 * 36 * 16.0;
  const double dense = 2 * 32 * 1024 * 128.0;
  const double head = 2 * 32 * 10 * 128 * 51.0;
  EXPECT_EQ(Of(costs, UpdatePhase::kConvolutions).flop, 2 * convolution);
  EXPECT_EQ(Of(costs, UpdatePhase::kDense).flop, 2 * dense);
  EXPECT_EQ(Of(costs, UpdatePhase::kTargetActions).flop, 2 * 32 * 10 * 6 * 128.0);
  EXPECT_EQ(Of(costs, UpdatePhase::kHead).flop, 2 * head);
  EXPECT_EQ(Of(costs, UpdatePhase::kSamples).flop, 0);
  EXPECT_EQ(Of(costs, UpdatePhase::kBackwardHead).flop, 0.5 * head);
  EXPECT_EQ(Of(costs, UpdatePhase::kBackwardInputs).flop, dense);  // none of the observation
  EXPECT_EQ(Of(costs, UpdatePhase::kBackwardWeights).flop, convolution + dense);
  const double torso = 36 * 16 + 16 + 1024 * 128 + 128;
  const double parameters = torso + 6 * 10 * 129 * 51.0;
  EXPECT_EQ(Of(costs, UpdatePhase::kOptimizer).flop, 12 * parameters + 0.5 * head);
  EXPECT_EQ(
      Of(costs, UpdatePhase::kOptimizer).bytes,
      4 * (6 * parameters + torso + 6 * 10 * 51));  // the gradient of the head's biases is stored
  EXPECT_EQ(Of(costs, UpdatePhase::kDense).bytes, 2 * 4 * (32 * (1024 + 128) + 1024 * 128.0));
}

TEST(UpdateCostTest, AThirdPassForDoubleQAndInputsOfTheLaterConvolutions) {
  LearnerSpec spec{.network = NatureNetwork({.actions = 6, .members = 1, .outputs = 1}),
                   .optimizer = RmsPropOptions{},
                   .batch = 1};
  const auto two = CostOfUpdate(spec, 1);
  spec.loss.double_q = true;
  const auto three = CostOfUpdate(spec, 1);
  const double layers[] = {400 * 256 * 32.0, 81 * 512 * 64.0, 49 * 576 * 64.0};
  EXPECT_EQ(Of(two, UpdatePhase::kConvolutions).flop, 4 * (layers[0] + layers[1] + layers[2]));
  EXPECT_EQ(Of(three, UpdatePhase::kConvolutions).flop, 6 * (layers[0] + layers[1] + layers[2]));
  EXPECT_EQ(Of(three, UpdatePhase::kDense).flop, 1.5 * Of(two, UpdatePhase::kDense).flop);
  EXPECT_EQ(Of(two, UpdatePhase::kBackwardInputs).flop, 2 * (layers[1] + layers[2] + 3136 * 512.0));
}

}  // namespace
}  // namespace uper::cpu
