#include "uper/train/run/make_learner.h"

#include <gtest/gtest.h>

namespace uper {
namespace {

TEST(MakeLearnerTest, ThePrecisionIsTheConfigurations) {
  const EnvironmentSpec environment{
      .name = "minatar/cells", .actions = 3, .height = 10, .width = 10, .channels = 4};
  RunConfig config;
  config.network.torso = TorsoPreset::kMinAtar;
  for (const Precision precision : {Precision::kFp32, Precision::kTf32, Precision::kTf32x3}) {
    config.precision = precision;
    EXPECT_EQ(LearnerSpecFrom(config, environment).precision, precision);
  }
}

}  // namespace
}  // namespace uper
