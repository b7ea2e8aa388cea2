#include "uper/nn/learner.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "uper/base/error_for_tests.h"

namespace uper {
namespace {

LearnerSpec Valid(HeadKind head) {
  const int outputs = head == HeadKind::kScalar ? 1 : 51;
  LearnerSpec spec{.network = MlpNetwork(4, {8}, {.actions = 2, .members = 3, .outputs = outputs})};
  spec.loss.head = head;
  return spec;
}

// The message of the Error(kUsage) that validation throws after a change.
std::string Complaint(HeadKind head, const std::function<void(LearnerSpec&)>& change) {
  LearnerSpec spec = Valid(head);
  change(spec);
  return Refusal([&] { spec.Validate(); });
}

TEST(LearnerSpecTest, EveryHeadIsAccepted) {
  for (const HeadKind head : {HeadKind::kScalar, HeadKind::kQuantile, HeadKind::kCategorical}) {
    EXPECT_NO_THROW(Valid(head).Validate());
  }
  LearnerSpec spec = Valid(HeadKind::kQuantile);
  spec.network.members = 64;
  spec.optimizer = RmsPropOptions{};
  spec.max_global_norm = 10;
  spec.batch = 1;
  EXPECT_NO_THROW(spec.Validate());
}

TEST(LearnerSpecTest, ComplaintsNameTheField) {
  const auto says = [](const std::string& message, const std::string& words) {
    return message.find(words) != std::string::npos;
  };
  constexpr HeadKind kQuantile = HeadKind::kQuantile;
  constexpr HeadKind kCategorical = HeadKind::kCategorical;
  EXPECT_TRUE(says(Complaint(kQuantile, [](LearnerSpec& s) { s.batch = 0; }), "batch_size"));
  EXPECT_TRUE(says(Complaint(kQuantile, [](LearnerSpec& s) { s.network.members = 65; }), "64"));
  EXPECT_TRUE(says(Complaint(kQuantile, [](LearnerSpec& s) { s.max_global_norm = -1; }),
                   "max_global_norm"));
  EXPECT_TRUE(says(Complaint(kQuantile,
                             [](LearnerSpec& s) {
                               s.max_global_norm = std::numeric_limits<double>::quiet_NaN();
                             }),
                   "max_global_norm"));
  EXPECT_TRUE(says(Complaint(HeadKind::kScalar, [](LearnerSpec& s) { s.network.outputs = 2; }),
                   "scalar head"));
  EXPECT_TRUE(
      says(Complaint(kCategorical, [](LearnerSpec& s) { s.network.outputs = 1; }), "atoms"));
  EXPECT_TRUE(
      says(Complaint(kCategorical, [](LearnerSpec& s) { s.loss.support.atoms = 50; }), "differ"));
  EXPECT_TRUE(says(
      Complaint(kCategorical, [](LearnerSpec& s) { s.loss.support.high = s.loss.support.low; }),
      "atoms_high"));
}

TEST(LearnerSpecTest, NetworkAndOptimizerAreValidatedToo) {
  EXPECT_NE(Complaint(HeadKind::kQuantile, [](LearnerSpec& s) { s.network.actions = 0; }),
            "accepted");
  EXPECT_NE(Complaint(HeadKind::kQuantile,
                      [](LearnerSpec& s) { s.optimizer = AdamOptions{.learning_rate = 0}; }),
            "accepted");
  EXPECT_NE(Complaint(HeadKind::kQuantile,
                      [](LearnerSpec& s) { s.optimizer = RmsPropOptions{.decay = 1}; }),
            "accepted");
}

}  // namespace
}  // namespace uper
