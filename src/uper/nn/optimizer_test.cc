#include "uper/nn/optimizer.h"

#include <gtest/gtest.h>

#include <limits>

#include "uper/base/error.h"

namespace uper {
namespace {

TEST(ClipScaleTest, ScalesFromTheBoundOn) {
  EXPECT_EQ(ClipScale(0, 10), 1);
  EXPECT_EQ(ClipScale(9.999, 10), 1);
  EXPECT_EQ(ClipScale(10, 10), 1);
  EXPECT_DOUBLE_EQ(ClipScale(10.5, 10), 10 / 10.5);
  EXPECT_DOUBLE_EQ(ClipScale(40, 10), 0.25);
  EXPECT_THROW(ClipScale(1, 0), Error);
}

TEST(OptimizerOptionsTest, RangesAreChecked) {
  EXPECT_NO_THROW(AdamOptions().Validate());
  EXPECT_NO_THROW(RmsPropOptions().Validate());
  EXPECT_THROW(AdamOptions{.learning_rate = 0}.Validate(), Error);
  EXPECT_THROW(AdamOptions{.first_moment_decay = 1}.Validate(), Error);
  EXPECT_THROW(AdamOptions{.second_moment_decay = -0.1}.Validate(), Error);
  EXPECT_THROW(AdamOptions{.epsilon = 0}.Validate(), Error);
  EXPECT_THROW(RmsPropOptions{.learning_rate = std::numeric_limits<double>::infinity()}.Validate(),
               Error);
  EXPECT_THROW(RmsPropOptions{.decay = 1}.Validate(), Error);
  EXPECT_THROW(RmsPropOptions{.epsilon = -1}.Validate(), Error);
}

}  // namespace
}  // namespace uper
