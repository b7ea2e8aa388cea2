#include "uper/core/importance_weights.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "uper/base/error.h"
#include "uper/base/random.h"

namespace uper {
namespace {

std::vector<float> Weights(const std::vector<double>& probabilities, double size, double exponent,
                           WeightNormalization normalization, double smallest = 0) {
  std::vector<float> weights(probabilities.size());
  ImportanceWeights(probabilities, size, exponent, normalization, smallest, weights);
  return weights;
}

TEST(ImportanceWeightsTest, HandValues) {
  // N P = 0.5 and 2; to the power -1/2: sqrt(2) and 1 / sqrt(2).
  const std::vector<double> p = {0.1, 0.4};
  const auto none = Weights(p, 5, 0.5, WeightNormalization::kNone);
  EXPECT_FLOAT_EQ(none[0], 1.41421356f);
  EXPECT_FLOAT_EQ(none[1], 0.70710678f);
  const auto batch = Weights(p, 5, 0.5, WeightNormalization::kBatchMax);
  EXPECT_FLOAT_EQ(batch[0], 1);
  EXPECT_FLOAT_EQ(batch[1], 0.5);
  // Smallest probability of the buffer 0.025: (5 * 0.025)^-1/2 = sqrt(8); sqrt(2) / sqrt(8) = 1/2.
  const auto buffer = Weights(p, 5, 0.5, WeightNormalization::kBufferMax, 0.025);
  EXPECT_FLOAT_EQ(buffer[0], 0.5);
  EXPECT_FLOAT_EQ(buffer[1], 0.25);
}

TEST(ImportanceWeightsTest, ExponentZeroIsNoCorrectionAndOneTheWholeOfIt) {
  const std::vector<double> p = {0.1, 0.2, 0.7};
  for (const auto normalization : {WeightNormalization::kNone, WeightNormalization::kBatchMax,
                                   WeightNormalization::kBufferMax}) {
    for (const float weight : Weights(p, 3, 0, normalization, 0.05)) EXPECT_EQ(weight, 1);
  }
  // w_i P_i is the same for all: the expectation of a weighted sample is the uniform one.
  const auto whole = Weights(p, 4, 1, WeightNormalization::kNone);
  for (std::size_t i = 0; i < p.size(); ++i) EXPECT_FLOAT_EQ(whole[i] * float(p[i]), 0.25);
}

TEST(ImportanceWeightsTest, UniformProbabilitiesGiveOnes) {
  for (const auto normalization : {WeightNormalization::kNone, WeightNormalization::kBatchMax,
                                   WeightNormalization::kBufferMax}) {
    for (const float w : Weights({0.125, 0.125}, 8, 0.4, normalization, 0.125)) EXPECT_EQ(w, 1);
  }
}

TEST(ImportanceWeightsTest, SizeMattersWithoutNormalizationOnly) {
  const std::vector<double> p = {0.1, 0.4};
  EXPECT_NE(Weights(p, 5, 0.5, WeightNormalization::kNone),
            Weights(p, 6, 0.5, WeightNormalization::kNone));
  EXPECT_EQ(Weights(p, 5, 0.5, WeightNormalization::kBatchMax),
            Weights(p, 6, 0.5, WeightNormalization::kBatchMax));
}

TEST(ImportanceWeightsTest, NormalizedWeightsAreInTheUnitInterval) {
  RandomStream random(1, "weights");
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<double> p(32);
    for (double& x : p) x = std::exp2(-1000 * random.Uniform());
    const double smallest = 0x1p-1022;
    for (const auto normalization :
         {WeightNormalization::kBatchMax, WeightNormalization::kBufferMax}) {
      for (const float w : Weights(p, 1e6, random.Uniform(), normalization, smallest)) {
        EXPECT_TRUE(w > 0 && w <= 1) << w;
      }
    }
    for (const float w : Weights(p, 1e6, 1, WeightNormalization::kNone)) {
      EXPECT_TRUE(w > 0 && std::isfinite(w)) << w;
    }
  }
}

TEST(ImportanceWeightsTest, ARoundingBelowTheSmallestStaysAtOne) {
  EXPECT_EQ(Weights({0.1}, 10, 1, WeightNormalization::kBufferMax, 0.1 * (1 + 1e-12))[0], 1);
}

TEST(ImportanceWeightsTest, ContractsAreChecked) {
  const auto none = WeightNormalization::kNone;
  EXPECT_TRUE(Weights({}, 1, 0.5, WeightNormalization::kBatchMax).empty());
  EXPECT_THROW(Weights({0.0}, 5, 0.5, none), Error);
  EXPECT_THROW(Weights({1.1}, 5, 0.5, none), Error);
  EXPECT_THROW(Weights({std::numeric_limits<double>::quiet_NaN()}, 5, 0.5, none), Error);
  EXPECT_THROW(Weights({0.5}, 0, 0.5, none), Error);
  EXPECT_THROW(Weights({0.5}, 5, 1.5, none), Error);
  EXPECT_THROW(Weights({0.5}, 5, -0.1, none), Error);
  EXPECT_THROW(Weights({0.5}, 5, 0.5, WeightNormalization::kBufferMax, 0), Error);
  std::vector<float> two(2);
  const std::vector<double> one = {0.5};
  EXPECT_THROW(ImportanceWeights(one, 5, 0.5, none, 0, two), Error);
}

TEST(EffectiveSampleSizeTest, HandValues) {
  EXPECT_EQ(EffectiveSampleSize({}), 0);
  EXPECT_EQ(EffectiveSampleSize(std::vector<float>{0, 0}), 0);
  EXPECT_DOUBLE_EQ(EffectiveSampleSize(std::vector<float>(32, 0.25f)), 32);
  EXPECT_DOUBLE_EQ(EffectiveSampleSize(std::vector<float>{1, 0, 0}), 1);
  // (1 + 3)^2 / (1 + 9) = 1.6
  EXPECT_DOUBLE_EQ(EffectiveSampleSize(std::vector<float>{1, 3}), 1.6);
}

}  // namespace
}  // namespace uper
