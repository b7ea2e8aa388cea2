#include "uper/nn/cuda/conv/first_layer/weight_gradient.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "uper/nn/cuda/runtime/cuda_for_tests.h"
#include "uper/nn/learner_data_for_tests.h"

namespace uper::cuda {
namespace {

constexpr int kTaps = 8, kStep = 4, kPlanes = 4, kUnits = 32;
constexpr int kWeightCount = kTaps * kTaps * kPlanes * kUnits;

struct WeightsCase {
  int height, width, count;
  bool whole = false;  // d_out are small whole numbers and pixels are not scaled: exact
};

ImageShape InOf(const WeightsCase& c) {
  return {.height = c.height, .width = c.width, .channels = kPlanes};
}

ImageShape OutOf(const WeightsCase& c) {
  return {.height = (c.height - kTaps) / kStep + 1,
          .width = (c.width - kTaps) / kStep + 1,
          .channels = kUnits};
}

struct WeightsData {
  explicit WeightsData(const WeightsCase& c)
      : d_out(RandomFloats(std::size_t{1} * c.count * OutOf(c).size(), "d_out")) {
    for (const int x : RandomInts(std::size_t{1} * c.count * InOf(c).size(), 256, "pixels")) {
      pixels.push_back(static_cast<std::uint8_t>(x));
    }
    for (float& value : d_out) {
      if (c.whole) value = std::round(std::clamp(value, -3.0F, 3.0F));
    }
  }

  std::vector<std::uint8_t> pixels;
  std::vector<float> d_out;
};

// d_w, followed by d_bias, in double.
std::vector<double> PlainWeights(const WeightsCase& c, const WeightsData& data, double scale) {
  const ImageShape in = InOf(c), out = OutOf(c);
  std::vector<double> result(kWeightCount + kUnits);
  for (std::size_t place = 0; place < data.d_out.size() / kUnits; ++place) {
    const std::size_t positions = std::size_t{1} * out.height * out.width;
    const std::size_t image = place / positions;
    const int y = static_cast<int>(place % positions) / out.width;
    const int x = static_cast<int>(place % out.width);
    const float* d = data.d_out.data() + place * kUnits;
    for (int tap = 0; tap < kTaps * kTaps * kPlanes; ++tap) {
      const int row = y * kStep + tap / kPlanes / kTaps;
      const int column = x * kStep + tap / kPlanes % kTaps;
      const std::size_t plane = image * kPlanes + tap % kPlanes;
      const double pixel = scale * data.pixels[(plane * in.height + row) * in.width + column];
      for (int f = 0; f < kUnits; ++f) result[tap * kUnits + f] += pixel * double{d[f]};
    }
    for (int f = 0; f < kUnits; ++f) result[kWeightCount + f] += double{d[f]};
  }
  return result;
}

// The expected result, bit by bit: exact sums of whole numbers within an image.
std::vector<float> WholeWeights(const WeightsCase& c, const WeightsData& data, float scale) {
  const ImageShape in = InOf(c), out = OutOf(c);
  const int positions = out.height * out.width;
  std::vector<float> result(kWeightCount + kUnits);
  for (int n = 0; n < c.count * kUnits; ++n) {
    const int image = n / kUnits, f = n % kUnits;
    const float* d = data.d_out.data() + std::size_t{1} * image * out.size() + f;
    float largest = 0;
    for (int at = 0; at < positions; ++at) largest = std::max(largest, std::abs(d[at * kUnits]));
    int exponent = 0;
    std::frexp(largest, &exponent);
    exponent = std::max(exponent, -95);  // the unit is a normal float
    std::vector<std::int64_t> whole(positions);
    for (int at = 0; at < positions; ++at) {
      whole[at] = std::llrint(std::ldexp(double{d[at * kUnits]}, 31 - exponent));
    }
    const auto value = [&](std::int64_t sum) {
      return std::ldexp(static_cast<float>(sum), exponent - 31);
    };
    for (int tap = 0; tap < kTaps * kTaps * kPlanes; ++tap) {
      const std::size_t plane = std::size_t{1} * image * kPlanes + tap % kPlanes;
      const std::uint8_t* pixels = data.pixels.data() + plane * in.height * in.width +
                                   tap / kPlanes / kTaps * in.width + tap / kPlanes % kTaps;
      std::int64_t sum = 0;
      for (int at = 0; at < positions; ++at) {
        sum += whole[at] * pixels[(at / out.width * in.width + at % out.width) * kStep];
      }
      result[tap * kUnits + f] += value(sum);
    }
    result[kWeightCount + f] += value(std::accumulate(whole.begin(), whole.end(), std::int64_t{0}));
  }
  for (int i = 0; i < kWeightCount; ++i) result[i] *= scale;
  return result;
}

struct Found {
  std::vector<float> results;  // d_w, followed by d_bias
  double squares = 0;
};

Found RunWeights(const WeightsCase& c, const WeightsData& data, float scale) {
  const DeviceBuffer<std::uint8_t> pixels = OnGpu(data.pixels);
  const DeviceBuffer<float> d_out = OnGpu(data.d_out);
  DeviceBuffer<float> parts = Poisoned(FirstLayerWeightGradientParts(c.count));
  DeviceBuffer<float> found = Poisoned(kWeightCount + kUnits);
  DeviceBuffer<double> squares = OnGpu(std::vector<double>(
      FirstLayerWeightGradientSquares(), std::numeric_limits<double>::quiet_NaN()));
  LaunchFirstLayerWeightGradient({.in = InOf(c),
                                  .out = OutOf(c),
                                  .scale = scale,
                                  .count = c.count,
                                  .pixels = pixels.data(),
                                  .d_out = d_out.data(),
                                  .parts = parts.data(),
                                  .d_w = found.data(),
                                  .d_bias = found.data() + kWeightCount,
                                  .squares = squares.data()},
                                 nullptr);
  const std::vector<double> sums = FromGpu(squares);
  return {.results = FromGpu(found), .squares = std::accumulate(sums.begin(), sums.end(), 0.0)};
}

// Compares with plain loops. Returns d_w and d_bias.
std::vector<float> CheckWeights(const WeightsCase& c) {
  SCOPED_TRACE(testing::Message() << c.height << "x" << c.width << " count " << c.count << " whole "
                                  << c.whole);
  const WeightsData data(c);
  const float scale = c.whole ? 1.0F : 1.0F / 255;
  const Found found = RunWeights(c, data, scale);
  const std::vector<double> expected = PlainWeights(c, data, double{scale});
  const std::span all(found.results);
  EXPECT_LE(RelativeError(all.first(kWeightCount), std::span(expected).first(kWeightCount)),
            c.whole ? 0 : 2e-6);
  EXPECT_LE(RelativeError(all.last(kUnits), std::span(expected).last(kUnits)), c.whole ? 0 : 2e-6);
  for (const float value : found.results) EXPECT_FALSE(std::isnan(value));
  double sum = 0;
  for (const float value : found.results) sum += double{value} * double{value};
  EXPECT_NEAR(found.squares, sum, 1e-12 * sum);
  return found.results;
}

class FirstLayerWeightGradientTest : public GpuTest {};

// Rows with and without whole groups of four positions; fewer rows than lanes, and so many that
// memory is reused; rows below the last window; images that are added in one round or two.
TEST_F(FirstLayerWeightGradientTest, AllSizes) {
  for (const bool whole : {false, true}) {
    CheckWeights({8, 8, 1, whole});
    CheckWeights({15, 12, 3, whole});
    CheckWeights({29, 44, 33, whole});
    CheckWeights({19, 48, 3, whole});
    CheckWeights({21, 80, 5, whole});
    CheckWeights({200, 84, 1, whole});
    CheckWeights({199, 44, 2, whole});
    for (const int count : {1, 3, 32, 33, 70}) CheckWeights({84, 84, count, whole});
  }
}

TEST_F(FirstLayerWeightGradientTest, RepeatsBitForBit) {
  const std::vector<float> first = CheckWeights({84, 84, 32});
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(SameBits(CheckWeights({84, 84, 32}), first));
}

TEST_F(FirstLayerWeightGradientTest, SumsOfAnImageAreExact) {
  for (const WeightsCase& c : {WeightsCase{84, 84, 1}, WeightsCase{84, 84, 3},
                               WeightsCase{29, 44, 2}, WeightsCase{200, 84, 1}}) {
    const WeightsData data(c);
    const float scale = 1.0F / 255;
    EXPECT_TRUE(SameBits(RunWeights(c, data, scale).results, WholeWeights(c, data, scale)))
        << c.height << "x" << c.width << " count " << c.count;
  }
}

// Most values are 0 beside the largest. Other filters have other magnitudes, and some values are as
// small as floats get.
TEST_F(FirstLayerWeightGradientTest, NumbersOfAllSizes) {
  const WeightsCase c{84, 84, 2};
  WeightsData data(c);
  const std::vector<int> shifts = RandomInts(data.d_out.size(), 60, "shifts");
  for (std::size_t i = 0; i < data.d_out.size(); ++i) {
    const int filter = static_cast<int>(i % kUnits);
    data.d_out[i] = std::ldexp(data.d_out[i], -shifts[i] - 4 * filter);
  }
  EXPECT_TRUE(SameBits(RunWeights(c, data, 1).results, WholeWeights(c, data, 1)));
}

// The largest possible sums: all pixels are white, and all d_out of a filter are equal.
TEST_F(FirstLayerWeightGradientTest, LargestSums) {
  const WeightsCase c{84, 84, 1};
  WeightsData data(c);
  std::ranges::fill(data.pixels, std::uint8_t{255});
  const float below_two = std::nextafter(2.0F, 0.0F);
  for (std::size_t i = 0; i < data.d_out.size(); ++i) {
    data.d_out[i] = i % 2 == 0 ? below_two : -below_two;
  }
  EXPECT_TRUE(SameBits(RunWeights(c, data, 1).results, WholeWeights(c, data, 1)));
}

TEST_F(FirstLayerWeightGradientTest, ZerosGiveZeros) {
  const WeightsCase c{84, 84, 3};
  WeightsData data(c);
  std::ranges::fill(data.d_out, 0.0F);
  const Found found = RunWeights(c, data, 1);
  for (const float value : found.results) EXPECT_EQ(value, 0.0F);
  EXPECT_EQ(found.squares, 0.0);
}

TEST_F(FirstLayerWeightGradientTest, WhatIsNotFiniteStaysInItsFilter) {
  const WeightsCase c{84, 84, 2};
  WeightsData data(c);
  const std::vector<float> finite = RunWeights(c, data, 1).results;
  constexpr int kNan = 5, kInfinite = 18;
  data.d_out[399 * kUnits + kNan] = std::numeric_limits<float>::quiet_NaN();
  data.d_out[500 * kUnits + kInfinite] = -std::numeric_limits<float>::infinity();
  const Found found = RunWeights(c, data, 1);
  for (std::size_t i = 0; i < finite.size(); ++i) {
    if (i % kUnits == kNan || i % kUnits == kInfinite) {
      EXPECT_TRUE(std::isnan(found.results[i])) << i;
    } else {
      EXPECT_EQ(found.results[i], finite[i]) << i;
    }
  }
  EXPECT_TRUE(std::isnan(found.squares));
}

TEST(FirstLayerWeightGradientSizeTest, ImagesMayBeHighButNotWide) {
  const auto is_supported = [](int height, int width) {
    return SupportsFirstLayerWeightGradient(OutOf({height, width, 1}));
  };
  EXPECT_TRUE(is_supported(84, 84));
  EXPECT_TRUE(is_supported(500, 84));
  EXPECT_TRUE(is_supported(6600, 84));
  EXPECT_FALSE(is_supported(6700, 84));  // sums of products of bytes would need more than 32 bits
  EXPECT_FALSE(is_supported(84, 88));
}

}  // namespace
}  // namespace uper::cuda
