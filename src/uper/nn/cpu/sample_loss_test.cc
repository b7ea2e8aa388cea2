#include "uper/nn/cpu/sample_loss.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "uper/nn/head_values.h"
#include "uper/nn/learner_data_for_tests.h"

namespace uper::cpu::sample_loss_test {
namespace {

constexpr HeadKind kHeads[] = {HeadKind::kScalar, HeadKind::kQuantile, HeadKind::kCategorical};

struct Result {
  SampleOutputs outputs;
  std::vector<float> d_online;
};

Result Compute(const LossSpec& spec, EnsembleShape shape, const SampleInputs& inputs) {
  LossScratch scratch(shape);
  Result result{.d_online = std::vector<float>(shape.members * shape.quantiles, 77)};
  result.outputs = ComputeSampleLoss(spec, shape, inputs, scratch, result.d_online);
  return result;
}

// Three members with random outputs, for any head.
struct Example {
  explicit Example(HeadKind head)
      : shape{.members = 3, .quantiles = head == HeadKind::kScalar ? 1U : 7U},
        online(RandomFloats(shape.members * shape.quantiles, "online")),
        target(RandomFloats(online.size(), "target")) {
    spec.head = head;
    spec.td_gradient_bound = 0;
    spec.support = {.low = -2, .high = 3, .atoms = shape.quantiles};
    inputs = {.online = online, .target = target, .r_t = 0.3F, .discount_t = 0.9F, .scale = 0.25};
  }

  Result Run() const { return Compute(spec, shape, inputs); }

  EnsembleShape shape;
  std::vector<float> online, target;
  LossSpec spec;
  SampleInputs inputs;
};

double TdError(Example& example, TdErrorKind meaning) {
  example.spec.td_priority = meaning;
  return example.Run().outputs.td_error;
}

TEST(SampleLossTest, ScalarHeadByHand) {
  const std::vector<float> online = {0.5F}, target = {2};
  LossSpec spec{.head = HeadKind::kScalar, .td_gradient_bound = 1};
  SampleInputs inputs{.online = online,
                      .target = target,
                      .r_t = 1,
                      .discount_t = 0.5F,
                      .weight = 0.5F,
                      .scale = 0.25};
  // delta = 1 + 0.5 * 2 - 0.5 = 1.5; weight * delta = 0.75 is within the bound.
  const Result within = Compute(spec, {}, inputs);
  EXPECT_DOUBLE_EQ(within.outputs.loss, 0.25 * 0.5 * 0.5 * 2.25);
  EXPECT_EQ(within.d_online[0], -0.1875F);
  EXPECT_DOUBLE_EQ(within.outputs.td_error, 1.5);
  EXPECT_DOUBLE_EQ(within.outputs.uncertainty.target_distance_sq, 2.25);
  EXPECT_EQ(within.outputs.uncertainty.epistemic, 0);
  EXPECT_EQ(within.outputs.uncertainty.aleatoric, 0);

  inputs.weight = 1;  // the weighted error is clipped, not the error: 1.5 becomes 1
  EXPECT_EQ(Compute(spec, {}, inputs).d_online[0], -0.25F);
  inputs.r_t = -5;
  EXPECT_EQ(Compute(spec, {}, inputs).d_online[0], 0.25F);
  inputs.r_t = 1;
  spec.td_gradient_bound = 0;
  EXPECT_EQ(Compute(spec, {}, inputs).d_online[0], -0.375F);
}

TEST(SampleLossTest, ScalarEnsembleByHand) {
  const std::vector<float> online = {0, 2}, target = {1, 2};
  const LossSpec spec{.head = HeadKind::kScalar};
  const Result result = Compute(spec, {.members = 2},
                                {.online = online, .target = target, .r_t = 0, .discount_t = 1});
  EXPECT_DOUBLE_EQ(result.outputs.td_error, 0.5);  // of 1 and 0
  EXPECT_DOUBLE_EQ(result.outputs.uncertainty.epistemic, 1);
  EXPECT_DOUBLE_EQ(result.outputs.uncertainty.target_distance_sq, 0.25);
  EXPECT_DOUBLE_EQ(result.outputs.uncertainty.epistemic_delta,
                   0.5);  // each member against its own target
  EXPECT_EQ(result.d_online, (std::vector<float>{-1, 0}));
}

TEST(SampleLossTest, QuantileHeadByHand) {
  const std::vector<float> online = {0, 1}, target = {0, 2};
  LossSpec spec{.head = HeadKind::kQuantile, .huber_kappa = 1};
  const SampleInputs inputs{.online = online,
                            .target = target,
                            .r_t = 1,
                            .discount_t = 0.5F,
                            .weight = 0.5F,
                            .scale = 0.5};
  const EnsembleShape shape{.members = 1, .quantiles = 2};
  // Targets 1 and 2; tau = 1/4 and 3/4.
  const Result result = Compute(spec, shape, inputs);
  EXPECT_DOUBLE_EQ(result.outputs.loss, 0.25 * 0.4375);
  EXPECT_EQ(result.d_online, (std::vector<float>{-0.0625F, -0.09375F}));
  EXPECT_DOUBLE_EQ(result.outputs.td_error, 1);
  EXPECT_DOUBLE_EQ(result.outputs.uncertainty.aleatoric, 0.25);
  EXPECT_DOUBLE_EQ(result.outputs.uncertainty.target_distance_sq, 1);
  // (1 + 4 + 0 + 1) / 4 - A.
  EXPECT_DOUBLE_EQ(result.outputs.uncertainty.epistemic_delta, 1.25);

  spec.target_form = TargetForm::kScalar;
  EXPECT_DOUBLE_EQ(Compute(spec, shape, inputs).outputs.uncertainty.epistemic_delta, 1);
  spec.td_priority = TdErrorKind::kLoss;
  EXPECT_DOUBLE_EQ(Compute(spec, shape, inputs).outputs.td_error, 0.4375);
  spec.huber_kappa = 0;
  EXPECT_DOUBLE_EQ(Compute(spec, shape, inputs).outputs.td_error, 0.75);
}

TEST(SampleLossTest, CategoricalHeadByHand) {
  const auto log = [](double x) { return static_cast<float>(std::log(x)); };
  const std::vector<float> online = {log(0.25), log(0.5), log(0.25)}, target = {0, 0, 0};
  LossSpec spec{.head = HeadKind::kCategorical, .support = {.low = -1, .high = 1, .atoms = 3}};
  // No bootstrapping: all mass at 0.5, between the atoms 0 and 1.
  const SampleInputs inputs{
      .online = online, .target = target, .r_t = 0.5F, .discount_t = 0, .weight = 0.5F, .scale = 2};
  const EnsembleShape shape{.members = 1, .quantiles = 3};
  const double cross_entropy = 0.5 * std::log(2) + 0.5 * std::log(4);
  const Result result = Compute(spec, shape, inputs);
  EXPECT_NEAR(result.outputs.loss, cross_entropy, 1e-6);
  EXPECT_NEAR(result.d_online[0], 0.25, 1e-7);
  EXPECT_NEAR(result.d_online[1], 0, 1e-7);
  EXPECT_NEAR(result.d_online[2], -0.25, 1e-7);
  EXPECT_NEAR(result.outputs.td_error, 0.5, 1e-7);

  spec.categorical_uncertainty = CategoricalUncertainty::kTotalVariance;
  const Uncertainty uncertainty = Compute(spec, shape, inputs).outputs.uncertainty;
  EXPECT_NEAR(uncertainty.aleatoric, 0.5, 1e-7);
  EXPECT_NEAR(uncertainty.target_distance_sq, 0.25, 1e-7);
  spec.td_priority = TdErrorKind::kLoss;
  EXPECT_NEAR(Compute(spec, shape, inputs).outputs.td_error, cross_entropy, 1e-6);
}

TEST(SampleLossTest, CrossEntropyAsPriorityIsCut) {
  const std::vector<float> online = {300, 0}, target = {0, 0};
  const LossSpec spec{.head = HeadKind::kCategorical,
                      .support = {.low = 0, .high = 1, .atoms = 2},
                      .td_priority = TdErrorKind::kLoss};
  const Result result = Compute(spec, {.members = 1, .quantiles = 2},
                                {.online = online, .target = target, .r_t = 1, .discount_t = 0});
  EXPECT_DOUBLE_EQ(result.outputs.loss, 300);
  EXPECT_EQ(result.outputs.td_error, kLargestLossPriority);
}

TEST(SampleLossTest, MaskedMembersNeitherLearnNorCount) {
  for (const HeadKind head : kHeads) {
    for (const TdErrorKind meaning : {TdErrorKind::kMeanAbsolute, TdErrorKind::kLoss}) {
      Example example(head);
      example.spec.td_priority = meaning;
      const Result all = example.Run();
      double sum = 0;
      for (std::size_t k = 0; k < example.shape.members; ++k) {
        example.inputs.mask = std::uint64_t{1} << k;
        const Result one = example.Run();
        sum += one.outputs.loss;
        for (std::size_t i = 0; i < one.d_online.size(); ++i) {
          const bool learns = i / example.shape.quantiles == k;
          EXPECT_EQ(one.d_online[i], learns ? all.d_online[i] : 0) << k << " " << i;
        }
        // Priorities use all members.
        EXPECT_EQ(one.outputs.td_error, all.outputs.td_error);
        EXPECT_EQ(one.outputs.uncertainty.epistemic, all.outputs.uncertainty.epistemic);
      }
      EXPECT_NEAR(sum, all.outputs.loss, 1e-12);
      example.inputs.mask = 0;
      EXPECT_EQ(example.Run().outputs.loss, 0);
    }
  }
}

TEST(SampleLossTest, WeightAndScaleAreFactors) {
  for (const HeadKind head : kHeads) {
    Example example(head);
    const Result one = example.Run();
    example.inputs.weight = 0.5F;
    const Result weighted = example.Run();
    example.inputs.weight = 1;
    example.inputs.scale *= 0.5;
    const Result scaled = example.Run();
    for (const Result* half : {&weighted, &scaled}) {
      EXPECT_DOUBLE_EQ(half->outputs.loss, 0.5 * one.outputs.loss);
      for (std::size_t i = 0; i < one.d_online.size(); ++i) {
        EXPECT_EQ(half->d_online[i], 0.5F * one.d_online[i]);
      }
      EXPECT_EQ(half->outputs.td_error, one.outputs.td_error);
    }
  }
}

TEST(SampleLossTest, TdErrorIsTheMeanOverMembers) {
  for (const HeadKind head : kHeads) {
    Example example(head);
    double absolute = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      const auto of = [&](const std::vector<float>& outputs) {
        return MemberValue(example.spec, std::span(outputs).subspan(k * example.shape.quantiles,
                                                                    example.shape.quantiles));
      };
      absolute += std::abs(double{0.3F} + double{0.9F} * of(example.target) - of(example.online));
    }
    EXPECT_NEAR(TdError(example, TdErrorKind::kMeanAbsolute), absolute / 3, 1e-6);
    const double loss = example.Run().outputs.loss;  // scale 1/4, three members
    EXPECT_NEAR(TdError(example, TdErrorKind::kLoss), loss * 4 / 3, 1e-12);
  }
}

TEST(SampleLossTest, CrossEntropyGradientSumsToZero) {
  const Example example(HeadKind::kCategorical);
  const Result result = example.Run();
  for (std::size_t k = 0; k < 3; ++k) {
    const auto member = std::span(result.d_online).subspan(7 * k, 7);
    EXPECT_NEAR(std::accumulate(member.begin(), member.end(), 0.0), 0, 1e-7);
    EXPECT_GT(*std::max_element(member.begin(), member.end()), 0.01F);
  }
}

TEST(SampleLossTest, RulesOfCategoricalUncertaintyDiffer) {
  // Two members, each certain of one end of the support.
  const std::vector<float> online = {300, 0, 0, 0, 0, 300}, target(6, 0);
  LossSpec spec{.head = HeadKind::kCategorical, .support = {.low = -1, .high = 1, .atoms = 3}};
  const auto uncertainty = [&](CategoricalUncertainty rule) {
    spec.categorical_uncertainty = rule;
    return Compute(spec, {.members = 2, .quantiles = 3},
                   {.online = online, .target = target, .r_t = 0.5F, .discount_t = 0})
        .outputs.uncertainty;
  };
  const Uncertainty variance = uncertainty(CategoricalUncertainty::kTotalVariance);
  EXPECT_DOUBLE_EQ(variance.epistemic, 1);
  EXPECT_DOUBLE_EQ(variance.aleatoric, 0);
  EXPECT_DOUBLE_EQ(variance.epistemic_delta, 1.25);
  const Uncertainty products = uncertainty(CategoricalUncertainty::kAuthors);
  EXPECT_DOUBLE_EQ(products.epistemic, 1.0 / 6);
  EXPECT_DOUBLE_EQ(products.aleatoric, 1.0 / 6);
  const Uncertainty quantiles = uncertainty(CategoricalUncertainty::kQuantiles);
  EXPECT_DOUBLE_EQ(quantiles.epistemic, 1);
  EXPECT_DOUBLE_EQ(quantiles.aleatoric, 0);

  Example example(HeadKind::kCategorical);
  std::vector<double> seen;
  for (const auto rule : {CategoricalUncertainty::kTotalVariance, CategoricalUncertainty::kAuthors,
                          CategoricalUncertainty::kQuantiles}) {
    example.spec.categorical_uncertainty = rule;
    seen.push_back(example.Run().outputs.uncertainty.aleatoric);
  }
  EXPECT_GT(std::abs(seen[0] - seen[1]), 1e-3);
  EXPECT_GT(std::abs(seen[0] - seen[2]), 1e-3);
  EXPECT_GT(std::abs(seen[1] - seen[2]), 1e-3);
}

TEST(SampleLossTest, NoDistanceToAnEqualDistribution) {
  for (const HeadKind head : kHeads) {
    for (const TargetForm form : {TargetForm::kAtari, TargetForm::kScalar}) {
      Example example(head);
      example.spec.target_form = form;
      example.inputs.target = example.online;
      example.inputs.r_t = 0;
      example.inputs.discount_t = 1;
      EXPECT_NEAR(example.Run().outputs.uncertainty.target_distance_sq, 0, 1e-14);
    }
  }
}

TEST(SampleLossTest, WhatIsNotFiniteIsNotLost) {
  constexpr float kBad[] = {std::numeric_limits<float>::quiet_NaN(),
                            std::numeric_limits<float>::infinity()};
  for (const HeadKind head : kHeads) {
    for (const float bad : kBad) {
      Example reward(head);
      reward.inputs.r_t = bad;
      EXPECT_FALSE(std::isfinite(reward.Run().outputs.loss));
      Example online(head);
      online.online[0] = bad;
      EXPECT_FALSE(std::isfinite(online.Run().outputs.loss));
      for (const auto rule :
           {CategoricalUncertainty::kTotalVariance, CategoricalUncertainty::kAuthors}) {
        Example target(head);
        target.target.back() = bad;
        target.spec.categorical_uncertainty = rule;
        EXPECT_FALSE(std::isfinite(target.Run().outputs.loss));
      }
    }
  }
}

}  // namespace
}  // namespace uper::cpu::sample_loss_test
