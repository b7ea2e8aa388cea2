#include "uper/nn/head_values.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace uper {
namespace {

TEST(SoftmaxTest, StableForAnyLogits) {
  const auto softmax = [](const std::vector<float>& logits) {
    std::vector<float> probabilities(logits.size());
    Softmax(logits, probabilities);
    return probabilities;
  };
  EXPECT_EQ(softmax({0, 0}), (std::vector<float>{0.5F, 0.5F}));
  EXPECT_EQ(softmax({1e30F, 0}), (std::vector<float>{1, 0}));
  EXPECT_EQ(softmax({-1e30F, -1e30F}), (std::vector<float>{0.5F, 0.5F}));
  const auto three = softmax({1, 2, 3});
  EXPECT_NEAR(three[2] / three[1], std::exp(1.0), 1e-6);
}

TEST(MemberValueTest, ByHand) {
  LossSpec spec{.head = HeadKind::kQuantile};
  const std::vector<float> outputs = {1, 2, 6};
  EXPECT_DOUBLE_EQ(MemberValue(spec, outputs), 3);
  spec.head = HeadKind::kCategorical;
  spec.support = {.low = 0, .high = 4, .atoms = 3};
  const std::vector<float> equal = {5, 5, 5};
  EXPECT_DOUBLE_EQ(MemberValue(spec, equal), 2);
  const std::vector<float> sure = {0, 0, 900};
  EXPECT_DOUBLE_EQ(MemberValue(spec, sure), 4);
}

}  // namespace
}  // namespace uper
