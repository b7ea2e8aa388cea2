#include "uper/nn/cuda/conv/conv_stack_training.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>

#include "uper/nn/cuda/conv/conv_gemm.h"
#include "uper/nn/cuda/conv/conv_stack_for_tests.h"

namespace uper::cuda {
namespace {

constexpr int kLayers = ConvStackTraining::kLayers;
constexpr int kSizes[kLayers] = {20 * 20 * 32, 9 * 9 * 64, 7 * 7 * 64};

// Results of all layers: [layer][image, row, column, filter].
using Results = std::array<std::vector<float>, kLayers>;

// A call and its data on the GPU. Each pass has its own weights.
struct Call {
  ConvStackTraining call;
  std::vector<DeviceBuffer<std::uint8_t>> images;
  std::vector<DeviceBuffer<float>> operands, results;

  Call(int count, float scale) : call{.scale = scale, .count = count, .passes = 0} {}

  void Add(const std::vector<std::uint8_t>& pixels, const AtariWeights& weights) {
    ConvStackTraining::Pass& pass = call.list[call.passes++];
    pass.pixels = images.emplace_back(OnGpu(pixels)).data();
    for (int i = 0; i < kLayers; ++i) {
      pass.w[i] = operands.emplace_back(OnGpu(weights.w[i])).data();
      pass.bias[i] = operands.emplace_back(OnGpu(weights.bias[i])).data();
      pass.out[i] =
          results.emplace_back(Poisoned(std::size_t{1} * call.count * kSizes[i] + 4)).data();
    }
  }
  std::vector<Results> Run() {
    LaunchConvStackTraining(call, nullptr);
    std::vector<Results> found(call.passes);
    for (int i = 0; i < call.passes * kLayers; ++i) {
      std::vector<float> all = FromGpu(results[i]);
      for (int beyond = 0; beyond < 4; ++beyond) {
        EXPECT_TRUE(std::isnan(all.back())) << "beside the results";
        all.pop_back();
      }
      found[i / kLayers][i % kLayers] = std::move(all);
    }
    return found;
  }
};

Results OnePass(const std::vector<std::uint8_t>& pixels, int count, float scale,
                const AtariWeights& weights) {
  Call call(count, scale);
  call.Add(pixels, weights);
  return call.Run()[0];
}

// One of the later layers of one image, from the layer before it.
void ExpectLayer(const Results& found, int layer, int image, const AtariWeights& weights,
                 double tolerance) {
  const auto part = [&](int i) {
    return std::span(found[i]).subspan(std::size_t{1} * image * kSizes[i], kSizes[i]);
  };
  const auto in = part(layer - 1);
  const std::vector<double> expected = Convolved(
      std::vector<double>(in.begin(), in.end()), layer == 1 ? 20 : 9,
      kAtariLayers[layer - 1].filters, kAtariLayers[layer], weights.w[layer], weights.bias[layer]);
  const double largest = *std::ranges::max_element(expected);
  ASSERT_GT(largest, 0);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    ASSERT_NEAR(part(layer)[i], expected[i], tolerance * largest)
        << "layer " << layer << ", image " << image << ", " << i;
  }
}

class ConvStackTrainingTest : public GpuTest {};

TEST_F(ConvStackTrainingTest, IsThreeConvolutions) {
  const AtariWeights weights(false);
  const std::vector<std::uint8_t> pixels = Screens(3, 256);
  const Results found = OnePass(pixels, 3, 1.0F / 255, weights);
  EXPECT_TRUE(SameBits(found[0], FirstLayer(pixels, 3, 1.0F / 255, weights)));
  for (const int image : {0, 2}) {
    ExpectLayer(found, 1, image, weights, 1e-6);
    ExpectLayer(found, 2, image, weights, 1e-6);
  }
}

TEST_F(ConvStackTrainingTest, SmallWholeNumbersAreExact) {
  const AtariWeights weights(true);
  const std::vector<std::uint8_t> pixels = Screens(2, 4);
  const Results found = OnePass(pixels, 2, 1, weights);
  ASSERT_LT(*std::ranges::max_element(found[2]), 1 << 24);
  ASSERT_GT(std::ranges::count_if(found[2], [](float x) { return x > 0; }), 500);
  EXPECT_TRUE(SameBits(found[0], FirstLayer(pixels, 2, 1, weights)));
  for (const int image : {0, 1}) {
    ExpectLayer(found, 1, image, weights, 0);
    ExpectLayer(found, 2, image, weights, 0);
  }
}

TEST_F(ConvStackTrainingTest, PassesAndImagesDoNotChangeEachOther) {
  const AtariWeights weights(false);
  AtariWeights others(false);
  for (auto& w : others.w) std::ranges::reverse(w);
  const std::vector<std::uint8_t> pixels = Screens(40, 256);
  const std::vector<std::uint8_t> reversed(pixels.rbegin(), pixels.rend());
  Call both(40, 1.0F / 255);
  both.Add(pixels, weights);
  both.Add(reversed, others);
  const std::vector<Results> many = both.Run();
  const Results few = OnePass(pixels, 3, 1.0F / 255, weights);
  const Results other = OnePass(reversed, 40, 1.0F / 255, others);
  for (int i = 0; i < kLayers; ++i) {
    EXPECT_TRUE(SameBits(few[i], std::span(many[0][i]).first(few[i].size()))) << i;
    EXPECT_TRUE(SameBits(other[i], many[1][i])) << i;
  }
}

// One of the later layers from the layer before it, by LaunchConvGemms().
std::vector<float> LayerApart(const std::vector<float>& in, int layer, int count,
                              const AtariWeights& weights) {
  const ConvolutionSpec& spec = kAtariLayers[layer];
  const int side = layer == 1 ? 20 : 9, out_side = layer == 1 ? 9 : 7;
  const int channels = kAtariLayers[layer - 1].filters;
  const int tap = channels * spec.filters;
  const DeviceBuffer<float> a = OnGpu(in), w = OnGpu(weights.w[layer]);
  const DeviceBuffer<float> bias = OnGpu(weights.bias[layer]);
  DeviceBuffer<float> c = Poisoned(std::size_t{1} * count * kSizes[layer]);
  ConvGemmBatch call{.images = count,
                     .pixels = side * side,
                     .channels = channels,
                     .columns = spec.filters,
                     .narrow = true,
                     .by_channels = true,
                     .c_image = kSizes[layer],
                     .epilogue = GemmEpilogue::kBiasRelu};
  call.gemms[0] = {.height = out_side,
                   .width = out_side,
                   .tap_rows = spec.kernel,
                   .tap_columns = spec.kernel,
                   .a = a.data(),
                   .windows = {.row = spec.stride * side, .column = spec.stride},
                   .taps = {.row = side, .column = 1},
                   .b = w.data(),
                   .b_taps = {.row = spec.kernel * tap, .column = tap},
                   .bias = bias.data(),
                   .c = c.data(),
                   .c_at = {.row = out_side * spec.filters, .column = spec.filters}};
  LaunchConvGemms(call, nullptr);
  return FromGpu(c);
}

TEST_F(ConvStackTrainingTest, KernelsOfTheirOwnHaveTheSameBits) {
  constexpr int kCount = 20;
  AtariWeights weights(false);
  for (const bool finite : {true, false}) {
    if (!finite) weights.w[1][1000] = std::numeric_limits<float>::quiet_NaN();
    const Results found = OnePass(Screens(kCount, 256), kCount, 1.0F / 255, weights);
    for (const int layer : {1, 2}) {
      EXPECT_TRUE(SameBits(LayerApart(found[layer - 1], layer, kCount, weights), found[layer]))
          << layer;
    }
  }
}

TEST_F(ConvStackTrainingTest, WeightsThatAreNotFiniteShow) {
  const std::vector<std::uint8_t> pixels = Screens(2, 256);
  for (int layer = 0; layer < kLayers; ++layer) {
    AtariWeights weights(false);
    weights.w[layer][(100 * kAtariLayers[layer].filters) + 13] =
        std::numeric_limits<float>::quiet_NaN();
    const Results found = OnePass(pixels, 2, 1.0F / 255, weights);
    const auto is_nan = [](float x) { return std::isnan(x); };
    EXPECT_GT(std::ranges::count_if(found[layer], is_nan), 0);
    for (int behind = layer + 1; behind < kLayers; ++behind) {
      EXPECT_TRUE(std::ranges::all_of(found[behind], is_nan)) << layer << " " << behind;
    }
  }
}

}  // namespace
}  // namespace uper::cuda
