#include "uper/nn/cuda/conv/conv_stack_acting.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <thread>

#include "uper/nn/cuda/conv/conv_stack_for_tests.h"

namespace uper::cuda {
namespace {

// All images, by plain loops.
std::vector<double> Expected(const std::vector<std::uint8_t>& pixels, int count, float scale,
                             const AtariWeights& weights) {
  std::vector<double> all;
  const int plane = kAtariScreen.height * kAtariScreen.width;
  for (int image = 0; image < count; ++image) {
    std::vector<double> in(kAtariPixels);
    for (int i = 0; i < kAtariPixels; ++i) {
      in[i] = double{scale} * pixels[image * kAtariPixels + i % kAtariScreen.channels * plane +
                                     i / kAtariScreen.channels];
    }
    int side = kAtariScreen.height, channels = kAtariScreen.channels;
    for (int i = 0; i < ConvStackActing::kLayers; ++i) {
      in = Convolved(in, side, channels, kAtariLayers[i], weights.w[i], weights.bias[i]);
      side = (side - kAtariLayers[i].kernel) / kAtariLayers[i].stride + 1;
      channels = kAtariLayers[i].filters;
    }
    all.insert(all.end(), in.begin(), in.end());
  }
  return all;
}

std::vector<float> OfTheKernel(const std::vector<std::uint8_t>& pixels, int count, float scale,
                               const AtariWeights& weights, const FramePointerView& frames = {}) {
  const DeviceBuffer<std::uint8_t> images = OnGpu(pixels);
  std::vector<DeviceBuffer<float>> memory;
  DeviceBuffer<float> out = Poisoned(std::size_t{1} * count * 7 * 7 * 64);
  ConvStackActing call{
      .pixels = images.data(), .frames = frames, .scale = scale, .count = count, .out = out.data()};
  for (int i = 0; i < ConvStackActing::kLayers; ++i) {
    call.w[i] = memory.emplace_back(OnGpu(weights.w[i])).data();
    call.bias[i] = memory.emplace_back(OnGpu(weights.bias[i])).data();
  }
  LaunchConvStackActing(call, nullptr);
  return FromGpu(out);
}

// One of the later layers, with the kernel's order of additions: a lane has every 32nd channel, and
// columns of the kernel that are a stride apart follow each other.
std::vector<float> ConvolvedInOrder(std::span<const float> in, int side, int channels,
                                    const ConvolutionSpec& layer, const std::vector<float>& w,
                                    const std::vector<float>& bias) {
  constexpr int kLanes = 32;
  const int out_side = (side - layer.kernel) / layer.stride + 1;
  std::vector<int> columns;
  for (int phase = 0; phase < layer.stride; ++phase) {
    for (int j = phase; j < layer.kernel; j += layer.stride) columns.push_back(j);
  }
  std::vector<float> out;
  for (int at = 0; at < out_side * out_side * layer.filters; ++at) {
    const int f = at % layer.filters;
    const int y = at / layer.filters / out_side * layer.stride;
    const int x = at / layer.filters % out_side * layer.stride;
    std::array<float, kLanes> sums{};
    for (int c = 0; c < channels; ++c) {
      float& sum = sums[c % kLanes];
      for (int i = 0; i < layer.kernel; ++i) {
        for (const int j : columns) {
          sum = std::fmaf(in[((y + i) * side + x + j) * channels + c],
                          w[((i * layer.kernel + j) * channels + c) * layer.filters + f], sum);
        }
      }
    }
    for (int bit = kLanes / 2; bit > 0; bit /= 2) {
      for (int lane = 0; lane < bit; ++lane) sums[lane] += sums[lane + bit];
    }
    out.push_back(std::max(0.0F, sums[0] + bias[f]));
  }
  return out;
}

class ConvStackActingTest : public GpuTest {};

TEST_F(ConvStackActingTest, IsThreeConvolutions) {
  const AtariWeights weights(false);
  for (const int count : {1, 3}) {
    const std::vector<std::uint8_t> pixels = Screens(count, 256);
    const std::vector<double> expected = Expected(pixels, count, 1.0F / 255, weights);
    const std::vector<float> found = OfTheKernel(pixels, count, 1.0F / 255, weights);
    const double largest = *std::ranges::max_element(expected);
    ASSERT_GT(largest, 0);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      ASSERT_NEAR(found[i], expected[i], 3e-6 * largest) << count << " " << i;
    }
  }
}

// Either eight or four blocks compute an image.
TEST_F(ConvStackActingTest, TheFirstLayerIsTheExactOne) {
  const AtariWeights weights(false);
  for (const int count : {2, 15}) {
    const std::vector<std::uint8_t> pixels = Screens(count, 256);
    const std::vector<float> first = FirstLayer(pixels, count, 1.0F / 255, weights);
    const std::vector<float> found = OfTheKernel(pixels, count, 1.0F / 255, weights);
    const std::size_t in_size = first.size() / count, out_size = found.size() / count;
    for (const int image : {0, count - 1}) {
      const auto in = std::span(first).subspan(image * in_size, in_size);
      const std::vector<float> second =
          ConvolvedInOrder(in, 20, 32, kAtariLayers[1], weights.w[1], weights.bias[1]);
      const std::vector<float> third =
          ConvolvedInOrder(second, 9, 64, kAtariLayers[2], weights.w[2], weights.bias[2]);
      EXPECT_TRUE(SameBits(std::span(found).subspan(image * out_size, out_size), third))
          << count << " " << image;
    }
  }
}

TEST_F(ConvStackActingTest, WeightsThatAreNotFiniteShow) {
  const std::vector<std::uint8_t> pixels = Screens(15, 256);
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    AtariWeights weights(false);
    weights.w[0][100 * 32 + 13] = bad;
    for (const int count : {1, 15}) {
      for (const float result : OfTheKernel(pixels, count, 1.0F / 255, weights)) {
        ASSERT_TRUE(std::isnan(result)) << count;
      }
    }
  }
}

TEST_F(ConvStackActingTest, SmallWholeNumbersAreExact) {
  const AtariWeights weights(true);
  const std::vector<std::uint8_t> pixels = Screens(2, 4);
  const std::vector<double> expected = Expected(pixels, 2, 1, weights);
  ASSERT_LT(*std::ranges::max_element(expected), 1 << 24);
  ASSERT_GT(std::ranges::count_if(expected, [](double x) { return x > 0; }), 500);
  const std::vector<float> found = OfTheKernel(pixels, 2, 1, weights);
  for (std::size_t i = 0; i < expected.size(); ++i) ASSERT_EQ(found[i], expected[i]) << i;
}

TEST_F(ConvStackActingTest, SameBitsForAnyCountAndWhenRepeated) {
  const AtariWeights weights(false);
  const std::vector<std::uint8_t> pixels = Screens(32, 256);
  const std::vector<float> many = OfTheKernel(pixels, 32, 1.0F / 255, weights);
  EXPECT_TRUE(SameBits(OfTheKernel(pixels, 32, 1.0F / 255, weights), many));
  for (const int count : {1, 5, 16}) {
    const std::vector<float> few = OfTheKernel(pixels, count, 1.0F / 255, weights);
    EXPECT_TRUE(SameBits(few, std::span(many).first(few.size()))) << count;
  }
}

// Screens whose frames are on the GPU, on the host, or zeros.
struct ScatteredScreens {
  explicit ScatteredScreens(int count)
      : pixels(Screens(count, 256)), there(OnGpu(pixels)), here(pixels.size()) {
    constexpr std::ptrdiff_t kPlane = kAtariPixels / 4;
    std::memcpy(here.data(), pixels.data(), pixels.size());
    for (int i = 0; i < 4 * count; ++i) {
      frames.push_back(i % 3 == 0   ? reinterpret_cast<const std::byte*>(there.data()) + i * kPlane
                       : i % 3 == 1 ? here.data() + i * kPlane
                                    : nullptr);
      if (i % 3 == 2) std::fill_n(pixels.begin() + i * kPlane, kPlane, std::uint8_t{0});
    }
  }
  void PutInto(FramePointerTable& table, int decision) const {
    for (std::size_t i = 0; i < frames.size() / 4; ++i) {
      table.Put(i, decision, std::span(frames).subspan(4 * i, 4));
    }
  }

  std::vector<std::uint8_t> pixels;
  DeviceBuffer<std::uint8_t> there;
  PinnedBuffer<std::byte> here;
  std::vector<const std::byte*> frames;
};

TEST_F(ConvStackActingTest, FramesMayBeAnywhere) {
  const AtariWeights weights(false);
  for (const int count : {2, 16}) {
    const ScatteredScreens screens(count);
    FramePointerTable table(count, 4);
    screens.PutInto(table, 3);
    const std::vector<float> expected = OfTheKernel(screens.pixels, count, 1.0F / 255, weights);
    const DeviceBuffer<int> made = OnGpu(std::vector<int>(count, 2));
    for (const int* before : {static_cast<const int*>(nullptr), made.data()}) {
      EXPECT_TRUE(SameBits(OfTheKernel({}, count, 1.0F / 255, weights, table.ForKernels(before)),
                           expected));
      EXPECT_FALSE(table.TimedOut());
    }
  }
}

// The table holds the frames of the previous decision, at first or for too long.
TEST_F(ConvStackActingTest, WaitsForItsFrames) {
  const AtariWeights weights(false);
  const ScatteredScreens screens(1);
  const std::vector<float> expected = OfTheKernel(screens.pixels, 1, 1.0F / 255, weights);
  const std::vector<std::uint8_t> black(kAtariPixels, 0);
  const std::vector<float> of_zeros = OfTheKernel(black, 1, 1.0F / 255, weights);
  const std::vector<const std::byte*> nowhere(4);
  for (const int decision : {15, 16, 1000}) {
    FramePointerTable table(1, 4);
    screens.PutInto(table, decision - 1);
    const DeviceBuffer<int> made = OnGpu(std::vector<int>{decision - 1});
    const FramePointerView frames = table.ForKernels(made.data());
    EXPECT_TRUE(SameBits(OfTheKernel({}, 1, 1.0F / 255, weights, frames), of_zeros));
    EXPECT_TRUE(table.TimedOut());
    table.ClearTimeout();
    table.Put(0, decision - 1, nowhere);
    std::thread later([&] {
      std::this_thread::sleep_for(std::chrono::microseconds(300));
      screens.PutInto(table, decision);
    });
    const std::vector<float> out = OfTheKernel({}, 1, 1.0F / 255, weights, frames);
    later.join();
    if (!table.TimedOut()) {
      EXPECT_TRUE(SameBits(out, expected));
    }
    EXPECT_TRUE(SameBits(OfTheKernel({}, 1, 1.0F / 255, weights, frames), expected));
  }
}

TEST(ConvStackActingSizes, OnlyTheAtariNetwork) {
  EXPECT_TRUE(SupportsConvStack(kAtariScreen, kAtariLayers));
  EXPECT_FALSE(SupportsConvStack(kAtariScreen, std::span(kAtariLayers).first(2)));
  InputSpec input = kAtariScreen;
  input.layout = InputLayout::kChannelsLast;
  EXPECT_FALSE(SupportsConvStack(input, kAtariLayers));
  input = kAtariScreen;
  input.width = 80;
  EXPECT_FALSE(SupportsConvStack(input, kAtariLayers));
  ConvolutionSpec other[] = {kAtariLayers[0], kAtariLayers[1], kAtariLayers[2]};
  other[2].filters = 32;
  EXPECT_FALSE(SupportsConvStack(kAtariScreen, other));
}

}  // namespace
}  // namespace uper::cuda
