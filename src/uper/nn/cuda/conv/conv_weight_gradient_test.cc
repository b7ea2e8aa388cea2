#include "uper/nn/cuda/conv/conv_weight_gradient.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "uper/nn/cuda/runtime/cuda_for_tests.h"
#include "uper/nn/learner_data_for_tests.h"

namespace uper::cuda {
namespace {

struct LayerCase {
  int kernel, stride;
  int height, width, channels, filters, count;  // of the input
  bool whole = false;                           // all numbers are small and whole: exact
};

ConvWeightGradient LayerShapeOf(const LayerCase& c) {
  ConvWeightGradient call;
  call.in = {.height = c.height, .width = c.width, .channels = c.channels};
  call.out = {.height = (c.height - c.kernel) / c.stride + 1,
              .width = (c.width - c.kernel) / c.stride + 1,
              .channels = c.filters};
  call.spec = {.filters = c.filters, .kernel = c.kernel, .stride = c.stride};
  call.count = c.count;
  // A border of one position on every side.
  call.d_row = (call.out.width + 2) * c.filters;
  call.d_image = (call.out.height + 2) * call.d_row;
  return call;
}

// d_w, followed by d_bias, in double.
std::vector<double> PlainGradient(const ConvWeightGradient& call, std::span<const float> x,
                                  std::span<const float> d_out) {
  const int row = call.spec.kernel * call.in.channels;
  const int taps = call.spec.kernel * row;
  const int filters = call.out.channels;
  std::vector<double> result(std::size_t{1} * (taps + 1) * filters);
  const int positions = call.out.height * call.out.width;
  for (int place = 0; place < call.count * positions; ++place) {
    const int image = place / positions;
    const int top = place % positions / call.out.width, left = place % call.out.width;
    const std::size_t at =
        call.d_row + filters + image * call.d_image + top * call.d_row + left * filters;
    const float* d = d_out.data() + at;
    const std::size_t first =
        image * call.in.size() + (top * call.in.width + left) * call.spec.stride * call.in.channels;
    const float* window = x.data() + first;
    for (int tap = 0; tap <= taps; ++tap) {
      const double value =
          tap < taps ? double{window[tap / row * call.in.width * call.in.channels + tap % row]}
                     : 1.0;
      for (int f = 0; f < filters; ++f) result[tap * filters + f] += value * double{d[f]};
    }
  }
  return result;
}

// The arrays of a layer, and the call that uses them. The border of d_out is NaN.
struct LayerArrays {
  explicit LayerArrays(const LayerCase& c) : call(LayerShapeOf(c)) {
    x = RandomFloats(std::size_t{1} * c.count * call.in.size(), "x");
    d = RandomFloats(std::size_t{1} * c.count * call.d_image, "d");
    for (std::vector<float>* values : {&x, &d}) {
      for (float& value : *values) {
        if (c.whole) value = std::round(std::clamp(value, -3.0F, 3.0F));
      }
    }
    for (std::size_t i = 0; i < d.size(); ++i) {
      const int at = static_cast<int>(i % call.d_image);
      const int top = at / call.d_row - 1, left = at % call.d_row / c.filters - 1;
      if (top < 0 || top >= call.out.height || left < 0 || left >= call.out.width) {
        d[i] = std::numeric_limits<float>::quiet_NaN();
      }
    }
    gpu_x = OnGpu(x);
    gpu_d = OnGpu(d);
    parts = Poisoned(ConvWeightGradientParts(call));
    const std::size_t weights = std::size_t{1} * c.kernel * c.kernel * c.channels * c.filters;
    found = Poisoned(weights + c.filters);
    squares = OnGpu(std::vector<double>(ConvWeightGradientSquares(call),
                                        std::numeric_limits<double>::quiet_NaN()));
    call.x = gpu_x.data();
    call.d_out = gpu_d.data() + call.d_row + c.filters;
    call.parts = parts.data();
    call.d_w = found.data();
    call.d_bias = found.data() + weights;
    call.squares = squares.data();
  }

  // Compares with plain loops. Returns d_w and d_bias.
  std::vector<float> Check(bool whole) const {
    const std::vector<float> results = FromGpu(found);
    const std::vector<double> expected = PlainGradient(call, x, d);
    const std::size_t weights = expected.size() - call.out.channels;
    const std::span all(results);
    EXPECT_LE(RelativeError(all.first(weights), std::span(expected).first(weights)),
              whole ? 0 : 2e-6);
    EXPECT_LE(RelativeError(all.subspan(weights), std::span(expected).subspan(weights)),
              whole ? 0 : 2e-6);
    double sum = 0;
    for (const float value : results) {
      EXPECT_FALSE(std::isnan(value));
      sum += double{value} * double{value};
    }
    const std::vector<double> sums = FromGpu(squares);
    EXPECT_NEAR(std::accumulate(sums.begin(), sums.end(), 0.0), sum, 1e-12 * sum);
    return results;
  }

  ConvWeightGradient call;
  std::vector<float> x, d;
  DeviceBuffer<float> gpu_x, gpu_d, parts, found;
  DeviceBuffer<double> squares;
};

std::vector<float> CheckLayer(const LayerCase& c) {
  SCOPED_TRACE(testing::Message() << c.kernel << "/" << c.stride << " of " << c.height << "x"
                                  << c.width << "x" << c.channels << " to " << c.filters
                                  << " count " << c.count << " whole " << c.whole);
  const LayerArrays layer(c);
  LaunchConvWeightGradient(layer.call, nullptr);
  LaunchConvGradientReduce({&layer.call, 1}, nullptr);
  return layer.Check(c.whole);
}

class ConvWeightGradientTest : public GpuTest {};

// One position; less than a segment, one and two segments; rows and columns after the last window;
// blocks with missing channels or filters; parts of one, two and three images.
TEST_F(ConvWeightGradientTest, AllSizes) {
  for (const bool whole : {false, true}) {
    CheckLayer({4, 2, 4, 4, 32, 16, 1, whole});
    CheckLayer({4, 2, 6, 21, 64, 48, 3, whole});
    CheckLayer({4, 2, 11, 17, 32, 80, 2, whole});
    CheckLayer({4, 2, 8, 27, 96, 64, 2, whole});
    CheckLayer({3, 1, 3, 3, 16, 16, 1, whole});
    CheckLayer({3, 1, 4, 9, 48, 48, 3, whole});
    CheckLayer({3, 1, 9, 7, 16, 32, 2, whole});
    CheckLayer({3, 1, 5, 12, 64, 16, 3, whole});
    for (const int count : {1, 3, 32, 33, 70}) {
      CheckLayer({4, 2, 20, 20, 32, 64, count, whole});
      CheckLayer({3, 1, 9, 9, 64, 64, count, whole});
    }
  }
}

TEST_F(ConvWeightGradientTest, AddsUpSeveralLayersAtOnce) {
  const LayerArrays layers[] = {LayerArrays({3, 1, 9, 9, 64, 64, 3, true}),
                                LayerArrays({4, 2, 20, 20, 32, 64, 33, true}),
                                LayerArrays({4, 2, 4, 4, 32, 16, 1, true})};
  std::vector<ConvWeightGradient> calls;
  for (const LayerArrays& layer : layers) {
    LaunchConvWeightGradient(layer.call, nullptr);
    calls.push_back(layer.call);
  }
  LaunchConvGradientReduce(calls, nullptr, LaunchOrder::kOverlapPrevious);
  for (const LayerArrays& layer : layers) layer.Check(true);
}

TEST_F(ConvWeightGradientTest, RepeatsBitForBit) {
  const LayerCase cases[] = {{4, 2, 20, 20, 32, 64, 32}, {3, 1, 9, 9, 64, 64, 32}};
  for (const LayerCase& c : cases) {
    const std::vector<float> first = CheckLayer(c);
    for (int i = 0; i < 2; ++i) EXPECT_TRUE(SameBits(CheckLayer(c), first));
  }
}

TEST(ConvWeightGradientSizeTest, SupportsSomeLayers) {
  const auto is_supported = [](const LayerCase& c) {
    const ConvWeightGradient call = LayerShapeOf(c);
    return SupportsConvWeightGradient(call.in, call.out, call.spec);
  };
  EXPECT_TRUE(is_supported({4, 2, 20, 20, 32, 64, 1}));
  EXPECT_TRUE(is_supported({3, 1, 9, 9, 64, 64, 1}));
  EXPECT_TRUE(is_supported({3, 1, 9, 9, 16, 16, 1}));
  EXPECT_FALSE(is_supported({3, 2, 9, 9, 64, 64, 1}));
  EXPECT_FALSE(is_supported({8, 4, 84, 84, 32, 32, 1}));
  EXPECT_FALSE(is_supported({4, 2, 20, 20, 16, 64, 1}));
  EXPECT_FALSE(is_supported({3, 1, 9, 9, 64, 24, 1}));
  EXPECT_FALSE(is_supported({3, 1, 40, 40, 32, 32, 1}));
}

}  // namespace
}  // namespace uper::cuda
