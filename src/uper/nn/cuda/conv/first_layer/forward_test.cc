#include "uper/nn/cuda/conv/first_layer/forward.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>

#include "uper/nn/cuda/runtime/cuda_for_tests.h"
#include "uper/nn/learner_data_for_tests.h"

namespace uper::cuda {
namespace {

// The layer that has its own kernel.
constexpr int kPixelTaps = 8, kPixelStride = 4, kPixelPlanes = 4, kPixelUnits = 32;

struct PixelCase {
  int height, width, count;
  Precision precision;
  bool whole = false;  // weights are small whole numbers and pixels are not scaled: exact
};

std::vector<std::uint8_t> RandomPixels(std::size_t size, const std::string& name) {
  std::vector<std::uint8_t> pixels;
  for (const int x : RandomInts(size, 256, name)) pixels.push_back(static_cast<std::uint8_t>(x));
  return pixels;
}

std::vector<float> RandomWeights(std::size_t size, const std::string& name, bool whole) {
  std::vector<float> values = RandomFloats(size, name);
  for (float& value : values) value = whole ? std::round(4 * value) : 0.1F * value;
  return values;
}

// Tolerance relative to the sum of the terms' magnitudes: pixels are exact.
double LargestPixelError(Precision precision) {
  return precision == Precision::kTf32 ? std::ldexp(1.01, -11) : std::ldexp(1.0, -20);
}

// Two passes, compared with plain loops. Returns the results.
std::vector<float> CheckPixels(const PixelCase& c) {
  SCOPED_TRACE(testing::Message() << c.height << "x" << c.width << " count " << c.count
                                  << " precision " << int(c.precision) << " whole " << c.whole);
  const ImageShape in{.height = c.height, .width = c.width, .channels = kPixelPlanes};
  const ImageShape out{.height = (c.height - kPixelTaps) / kPixelStride + 1,
                       .width = (c.width - kPixelTaps) / kPixelStride + 1,
                       .channels = kPixelUnits};
  FirstLayerForward call{.in = in,
                         .out = out,
                         .scale = c.whole ? 1.0F : 1.0F / 255,
                         .count = c.count,
                         .passes = 2,
                         .precision = c.precision};
  std::vector<DeviceBuffer<std::uint8_t>> images;
  std::vector<DeviceBuffer<float>> memory, results;
  std::vector<std::vector<std::uint8_t>> pixels;
  std::vector<std::vector<float>> w, bias;
  for (int i = 0; i < call.passes; ++i) {
    const std::string name = std::to_string(i);
    pixels.push_back(RandomPixels(std::size_t{1} * c.count * in.size(), "pixels" + name));
    w.push_back(
        RandomWeights(kPixelTaps * kPixelTaps * kPixelPlanes * kPixelUnits, "w" + name, c.whole));
    bias.push_back(RandomWeights(kPixelUnits, "bias" + name, c.whole));
    call.list[i] = {
        .pixels = images.emplace_back(OnGpu(pixels.back())).data(),
        .w = memory.emplace_back(OnGpu(w.back())).data(),
        .bias = memory.emplace_back(OnGpu(bias.back())).data(),
        .out = results.emplace_back(Poisoned(std::size_t{1} * c.count * out.size())).data()};
  }
  LaunchFirstLayerForward(call, nullptr);
  std::vector<float> all;
  double worst = 0;
  for (int i = 0; i < call.passes; ++i) {
    const std::vector<float> found = FromGpu(results[i]);
    all.insert(all.end(), found.begin(), found.end());
    for (std::size_t at = 0; at < found.size(); ++at) {
      const int f = static_cast<int>(at % kPixelUnits);
      const int place = static_cast<int>(at / kPixelUnits % (out.height * out.width));
      const std::size_t image = at / out.size() * in.size();
      double sum = bias[i][f], size = std::abs(sum);
      for (int tap = 0; tap < kPixelTaps * kPixelTaps * kPixelPlanes; ++tap) {
        const int y = place / out.width * kPixelStride + tap / kPixelPlanes / kPixelTaps;
        const int x = place % out.width * kPixelStride + tap / kPixelPlanes % kPixelTaps;
        const std::size_t pixel =
            image + (std::size_t{1} * (tap % kPixelPlanes) * in.height + y) * in.width + x;
        const double term = double{call.scale} * pixels[i][pixel] * w[i][tap * kPixelUnits + f];
        sum += term;
        size += std::abs(term);
      }
      const double error = std::abs(std::max(0.0, sum) - double{found[at]});
      worst = std::max(worst, error / size);
      EXPECT_LE(error, LargestPixelError(c.precision) * size) << at;
      if (testing::Test::HasFailure()) return {};  // one failure is enough
    }
  }
  if (c.whole) {
    EXPECT_EQ(worst, 0);
  }
  // shows that no other precision was used: fp32 and tf32x3 are far better
  if (c.precision == Precision::kTf32 && !c.whole) {
    EXPECT_GT(worst, std::ldexp(1.0, -18));
  }
  return all;
}

class FirstLayerForwardTest : public GpuTest {};

// Few images are cut differently from many; 19 and 29 rows leave incomplete pairs of rows.
TEST_F(FirstLayerForwardTest, AllSizesAndPrecisions) {
  for (const Precision precision : kAllPrecisions) {
    for (const bool whole : {false, true}) {
      CheckPixels({8, 8, 1, precision, whole});
      CheckPixels({29, 44, 3, precision, whole});
      CheckPixels({19, 36, 16, precision, whole});
      CheckPixels({84, 84, 1, precision, whole});
      CheckPixels({84, 84, 16, precision, whole});
    }
  }
}

TEST_F(FirstLayerForwardTest, SameBitsForAnyCountAndWhenRepeated) {
  for (const Precision precision : kAllPrecisions) {
    const std::vector<float> many = CheckPixels({84, 84, 16, precision});
    EXPECT_TRUE(SameBits(CheckPixels({84, 84, 16, precision}), many));
    const std::vector<float> few = CheckPixels({84, 84, 2, precision});  // the first images
    ASSERT_FALSE(few.empty());
    const std::size_t pass = many.size() / 2, count = few.size() / 2;
    EXPECT_TRUE(SameBits(std::span(few).first(count), std::span(many).first(count)));
    EXPECT_TRUE(SameBits(std::span(few).subspan(count), std::span(many).subspan(pass, count)));
  }
}

TEST_F(FirstLayerForwardTest, EveryPrecisionHasBitsOfItsOwn) {
  const std::vector<float> fp32 = CheckPixels({84, 84, 1, Precision::kFp32});
  const std::vector<float> tf32 = CheckPixels({84, 84, 1, Precision::kTf32});
  const std::vector<float> tf32x3 = CheckPixels({84, 84, 1, Precision::kTf32x3});
  EXPECT_FALSE(SameBits(fp32, tf32));
  EXPECT_FALSE(SameBits(fp32, tf32x3));
  EXPECT_GT(RelativeError(tf32, fp32), 10 * RelativeError(tf32x3, fp32));
}

// One pass in fp32, for which every bit of the result is known.
struct ExactCase {
  static constexpr int kTaps = kPixelTaps * kPixelTaps * kPixelPlanes;

  ExactCase(int height, int width, int images)
      : in{.height = height, .width = width, .channels = kPixelPlanes},
        out{.height = (height - kPixelTaps) / kPixelStride + 1,
            .width = (width - kPixelTaps) / kPixelStride + 1,
            .channels = kPixelUnits},
        count(images),
        pixels(RandomPixels(std::size_t{1} * images * in.size(), "pixels")),
        w(RandomWeights(kTaps * kPixelUnits, "w", false)),
        bias(RandomWeights(kPixelUnits, "bias", false)) {}

  float& weight(int tap, int filter) { return w[tap * kPixelUnits + filter]; }

  std::vector<float> Run() const {
    const DeviceBuffer<std::uint8_t> images = OnGpu(pixels);
    const DeviceBuffer<float> weights = OnGpu(w), biases = OnGpu(bias);
    DeviceBuffer<float> results = Poisoned(std::size_t{1} * count * out.size());
    FirstLayerForward call{.in = in, .out = out, .scale = kScale, .count = count};
    call.list[0] = {
        .pixels = images.data(), .w = weights.data(), .bias = biases.data(), .out = results.data()};
    LaunchFirstLayerForward(call, nullptr);
    return FromGpu(results);
  }

  // 2^e is above the filter's largest weight.
  int Exponent(int filter) const {
    float largest = 0;
    for (int tap = 0; tap < kTaps; ++tap) {
      largest = std::max(largest, std::abs(w[tap * kPixelUnits + filter]));
    }
    int exponent = 0;
    std::frexp(largest, &exponent);
    return exponent;
  }

  // A result, and its value without rounding of the weights.
  struct Expected {
    float exactly;
    double nearly, error;
  };
  Expected Of(std::size_t at, int exponent) const {
    const int f = static_cast<int>(at % kPixelUnits);
    const int place = static_cast<int>(at / kPixelUnits % (out.height * out.width));
    std::int64_t units = 0;
    double sum = 0, pixel_sum = 0;
    for (int tap = 0; tap < kTaps; ++tap) {
      const int y = place / out.width * kPixelStride + tap / kPixelPlanes / kPixelTaps;
      const int x = place % out.width * kPixelStride + tap / kPixelPlanes % kPixelTaps;
      const int pixel =
          pixels[at / out.size() * in.size() +
                 (std::size_t{1} * (tap % kPixelPlanes) * in.height + y) * in.width + x];
      const double weight = w[tap * kPixelUnits + f];
      units += pixel * std::llrint(std::ldexp(weight, 31 - exponent));
      sum += pixel * weight;
      pixel_sum += pixel;
    }
    const float unit = kScale * std::ldexp(1.0F, exponent - 31);
    const double result = double{kScale} * sum + double{bias[f]};
    const double rounding = std::abs(double{kScale} * sum) + std::abs(result);
    return {.exactly = std::max(0.0F, std::fmaf(unit, static_cast<float>(units), bias[f])),
            .nearly = std::max(0.0, result),
            .error = double{kScale} * pixel_sum * std::ldexp(1.0, exponent - 32) +
                     rounding * std::ldexp(1.001, -24)};
  }

  static constexpr float kScale = 1.0F / 255;
  ImageShape in, out;
  int count;
  std::vector<std::uint8_t> pixels;
  std::vector<float> w, bias;
};

// Among random filters: one without weights, one whose weights differ in size, and two whose sums
// are as large as possible for the first image.
TEST_F(FirstLayerForwardTest, Fp32SumsAreExact) {
  for (const auto& [height, width, count] :
       {std::array{8, 8, 2}, {84, 84, 2}, {51, 12, 33}, {29, 84, 32}, {84, 84, 32}}) {
    SCOPED_TRACE(testing::Message() << height << "x" << width << " count " << count);
    ExactCase c(height, width, count);
    std::fill_n(c.pixels.begin(), c.in.size(), 255);
    for (int tap = 0; tap < ExactCase::kTaps; ++tap) {
      c.weight(tap, 0) = 0;
      c.weight(tap, 9) *= tap == 77 ? 10 : 1e-6F;
      c.weight(tap, 18) = std::nextafter(2.0F, 0.0F);
      c.weight(tap, 31) = -std::nextafter(2.0F, 0.0F);
    }
    c.bias[31] = 600;  // something remains
    std::vector<int> exponents;
    for (int f = 0; f < kPixelUnits; ++f) exponents.push_back(c.Exponent(f));
    const std::vector<float> found = c.Run();
    for (std::size_t at = 0; at < found.size(); ++at) {
      const ExactCase::Expected expected = c.Of(at, exponents[at % kPixelUnits]);
      ASSERT_EQ(found[at], expected.exactly) << at;
      ASSERT_LE(std::abs(double{found[at]} - expected.nearly), expected.error) << at;
    }
  }
}

// A weight that is not finite has no whole number. All results of its filter must show it, and no
// others.
TEST_F(FirstLayerForwardTest, Fp32WeightsThatAreNotFinite) {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
        -std::numeric_limits<float>::infinity()}) {
    ExactCase c(29, 44, 2);
    const std::vector<float> before = c.Run();
    constexpr int kBad = 13;
    c.weight(100, kBad) = bad;
    const std::vector<float> found = c.Run();
    for (std::size_t at = 0; at < found.size(); ++at) {
      if (at % kPixelUnits == kBad) {
        ASSERT_TRUE(std::isnan(found[at])) << at;
      } else {
        ASSERT_EQ(found[at], before[at]) << at;
      }
    }
  }
}

}  // namespace
}  // namespace uper::cuda
