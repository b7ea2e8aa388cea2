#include "uper/cli/video/decision_view.h"

#include <gtest/gtest.h>

#include <cmath>

#include "uper/base/random.h"
#include "uper/base/threads/thread_pool.h"
#include "uper/core/categorical.h"
#include "uper/nn/cpu/cpu_learner.h"
#include "uper/nn/head_values.h"
#include "uper/nn/initialization.h"

namespace uper::cli {
namespace {

LearnerSpec DecisionSpec(HeadKind head, int members, int outputs) {
  LearnerSpec spec{.network =
                       MlpNetwork(3, {8}, {.actions = 2, .members = members, .outputs = outputs})};
  spec.loss.head = head;
  spec.loss.support = {.low = -1, .high = 3, .atoms = static_cast<std::size_t>(outputs)};
  return spec;
}

TEST(DecisionTest, QuantilesByHand) {
  const LearnerSpec spec = DecisionSpec(HeadKind::kQuantile, 2, 2);
  const std::vector<float> outputs = {0, 0, 0, 2, /*action 1:*/ 1, 3, 2, 6};
  const Decision decision = DescribeDecision(spec, outputs, 1, /*aleatoric_floor=*/0.25);
  EXPECT_EQ(decision.q, (std::vector<double>{0.5, 3}));
  EXPECT_EQ(decision.spread, (std::vector<double>{0.5, 1}));
  EXPECT_EQ(decision.quantiles, (std::vector<float>{1, 3, 2, 6}));
  EXPECT_DOUBLE_EQ(decision.uncertainty.epistemic, 1.25);  // (0.25 + 2.25) / 2
  EXPECT_DOUBLE_EQ(decision.uncertainty.aleatoric, 2.25);  // of 1.5 and 4.5
  EXPECT_DOUBLE_EQ(decision.info_gain, 0.5 * std::log(1 + 1.25 / 2.5));
}

TEST(DecisionTest, ScalarsHaveNoAleatoricPart) {
  const LearnerSpec spec = DecisionSpec(HeadKind::kScalar, 2, 1);
  const Decision decision =
      DescribeDecision(spec, std::vector<float>{1, 5, 2, 2}, 0, /*aleatoric_floor=*/1);
  EXPECT_EQ(decision.q, (std::vector<double>{3, 2}));
  EXPECT_EQ(decision.spread, (std::vector<double>{2, 0}));
  EXPECT_EQ(decision.uncertainty.epistemic, 4);
  EXPECT_EQ(decision.uncertainty.aleatoric, 0);
}

TEST(DecisionTest, CategoricalMembersFollowTheAgentsRule) {
  LearnerSpec spec = DecisionSpec(HeadKind::kCategorical, 2, 3);  // atoms -1, 1, 3
  const float zero = -200;                                        // a logit of probability 0
  const std::vector<float> outputs = {0, 0, 0, 0, 0, 0, /*action 1:*/ 0, zero, 0, zero, 0, 0};
  const std::vector<float> probabilities = {0.5, 0, 0.5, 0, 0.5, 0.5};
  std::vector<float> quantiles(6);
  for (const std::size_t at : {0, 3}) {
    CategoricalQuantiles<float>(spec.loss.support, std::span(probabilities).subspan(at, 3),
                                std::span(quantiles).subspan(at, 3));
  }
  const auto describe = [&](CategoricalUncertainty rule) {
    spec.loss.categorical_uncertainty = rule;
    return DescribeDecision(spec, outputs, 1, 1);
  };
  const Decision by_quantiles = describe(CategoricalUncertainty::kQuantiles);
  EXPECT_NEAR(by_quantiles.q[0], 1, 1e-12);
  EXPECT_NEAR(by_quantiles.q[1], 1.5, 1e-12);
  EXPECT_NEAR(by_quantiles.spread[1], 0.5, 1e-12);
  EXPECT_EQ(by_quantiles.quantiles, quantiles);
  const Uncertainty expected = DecomposeScalarTarget<float>(quantiles, {2, 3}, 0);
  EXPECT_EQ(by_quantiles.uncertainty.epistemic, expected.epistemic);
  EXPECT_EQ(by_quantiles.uncertainty.aleatoric, expected.aleatoric);

  const Uncertainty variance = describe(CategoricalUncertainty::kTotalVariance).uncertainty;
  EXPECT_NEAR(variance.epistemic, 0.25, 1e-12);  // of 1 and 2
  EXPECT_NEAR(variance.aleatoric, 2.5, 1e-12);   // (4 + 1) / 2
  const Uncertainty products = describe(CategoricalUncertainty::kAuthors).uncertainty;
  EXPECT_EQ(products.aleatoric,
            DecomposeCategoricalProducts<float>(spec.loss.support, probabilities, 2, 0).aleatoric);
}

TEST(DecisionTest, AgreesWithALearner) {
  for (const HeadKind head : {HeadKind::kScalar, HeadKind::kQuantile, HeadKind::kCategorical}) {
    const LearnerSpec spec = DecisionSpec(head, 4, head == HeadKind::kScalar ? 1 : 5);
    ThreadPool pool(1);
    cpu::CpuLearner learner(spec, pool);
    RandomStream stream(1, "decision");
    InitializeUniform(learner.layout(), stream, learner.State().online);
    learner.CommitState(0);
    std::vector<std::byte> observation(spec.network.observation_size() *
                                       (spec.network.input.type == InputType::kUint8 ? 1 : 4));
    observation[0] = std::byte{1};
    std::vector<float> outputs(spec.network.actions * spec.network.member_outputs()), q(2);
    learner.MemberOutputs(observation, outputs);
    learner.ActionValues(observation, 1, q);
    const Decision decision = DescribeDecision(spec, outputs, 1, 1);
    EXPECT_NEAR(decision.q[0], q[0], 1e-5);
    EXPECT_NEAR(decision.q[1], q[1], 1e-5);
    EXPECT_NE(decision.q[0], decision.q[1]);
    EXPECT_GT(decision.spread[1], 0);
    EXPECT_EQ(decision.uncertainty.epistemic,
              DecomposeScalarTarget<float>(
                  decision.quantiles,
                  {.members = 4, .quantiles = static_cast<std::size_t>(spec.network.outputs)}, 0)
                  .epistemic);
  }
}

}  // namespace
}  // namespace uper::cli
