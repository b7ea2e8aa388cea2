#include "uper/nn/cuda/pixel_weights.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "uper/nn/cuda/test_support.h"
#include "uper/nn/test_data.h"

namespace uper {
namespace {

constexpr int kTaps = 8, kStep = 4, kPlanes = 4, kUnits = 32;
constexpr int kWeightCount = kTaps * kTaps * kPlanes * kUnits;

struct WeightsCase {
  int height, width, count;
  bool whole = false;  // d_out are small whole numbers and pixels are not scaled: exact
};

PictureShape InOf(const WeightsCase& c) {
  return {.height = c.height, .width = c.width, .channels = kPlanes};
}

PictureShape OutOf(const WeightsCase& c) {
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

// d_w and behind it d_bias, in double.
std::vector<double> PlainWeights(const WeightsCase& c, const WeightsData& data, double scale) {
  const PictureShape in = InOf(c), out = OutOf(c);
  std::vector<double> result(kWeightCount + kUnits);
  for (std::size_t place = 0; place < data.d_out.size() / kUnits; ++place) {
    const std::size_t positions = std::size_t{1} * out.height * out.width;
    const std::size_t picture = place / positions;
    const int y = static_cast<int>(place % positions) / out.width;
    const int x = static_cast<int>(place % out.width);
    const float* d = data.d_out.data() + place * kUnits;
    for (int tap = 0; tap < kTaps * kTaps * kPlanes; ++tap) {
      const int row = y * kStep + tap / kPlanes / kTaps;
      const int column = x * kStep + tap / kPlanes % kTaps;
      const std::size_t plane = picture * kPlanes + tap % kPlanes;
      const double pixel = scale * data.pixels[(plane * in.height + row) * in.width + column];
      for (int f = 0; f < kUnits; ++f) result[tap * kUnits + f] += pixel * double{d[f]};
    }
    for (int f = 0; f < kUnits; ++f) result[kWeightCount + f] += double{d[f]};
  }
  return result;
}

// Compared with plain loops. Returns d_w and d_bias.
std::vector<float> CheckWeights(const WeightsCase& c) {
  SCOPED_TRACE(testing::Message() << c.height << "x" << c.width << " count " << c.count << " whole "
                                  << c.whole);
  const WeightsData data(c);
  const float scale = c.whole ? 1.0F : 1.0F / 255;
  const DeviceBuffer<std::uint8_t> pixels = OnGpu(data.pixels);
  const DeviceBuffer<float> d_out = OnGpu(data.d_out);
  DeviceBuffer<float> parts = Poisoned(PixelWeightParts(c.count));
  DeviceBuffer<float> found = Poisoned(kWeightCount + kUnits);
  DeviceBuffer<double> squares =
      OnGpu(std::vector<double>(PixelWeightSquares(), std::numeric_limits<double>::quiet_NaN()));
  LaunchPixelWeights({.in = InOf(c),
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
  const std::vector<float> results = FromGpu(found);
  const std::vector<double> expected = PlainWeights(c, data, double{scale});
  const std::span all(results);
  EXPECT_LE(RelativeError(all.first(kWeightCount), std::span(expected).first(kWeightCount)),
            c.whole ? 0 : 2e-6);
  EXPECT_LE(RelativeError(all.last(kUnits), std::span(expected).last(kUnits)), c.whole ? 0 : 2e-6);
  for (const float value : results) EXPECT_FALSE(std::isnan(value));
  double sum = 0;
  for (const float value : results) sum += double{value} * double{value};
  const std::vector<double> sums = FromGpu(squares);
  EXPECT_NEAR(std::accumulate(sums.begin(), sums.end(), 0.0), sum, 1e-12 * sum);
  return results;
}

class PixelWeightsTest : public GpuTest {};

// One segment in a row or two, whole or not; fewer rows than warps and so many that memory is used
// again; rows below the last window; pictures that are added up in one round or two.
TEST_F(PixelWeightsTest, AllSizes) {
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

TEST_F(PixelWeightsTest, RepeatsBitForBit) {
  const std::vector<float> first = CheckWeights({84, 84, 32});
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(SameBits(CheckWeights({84, 84, 32}), first));
}

TEST(PixelWeightsSizeTest, HighPicturesDoNotFit) {
  const auto suits = [](int height, int width) {
    const WeightsCase c{height, width, 1};
    return SuitsPixelWeights(InOf(c), OutOf(c));
  };
  EXPECT_TRUE(suits(84, 84));
  EXPECT_TRUE(suits(480, 84));
  EXPECT_FALSE(suits(500, 84));
  EXPECT_TRUE(suits(500, 60));
  EXPECT_FALSE(suits(84, 88));
}

}  // namespace
}  // namespace uper
