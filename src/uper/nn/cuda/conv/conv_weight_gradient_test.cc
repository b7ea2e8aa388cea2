#include "uper/nn/cuda/conv/conv_weight_gradient.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "uper/nn/cuda/runtime/cuda_for_tests.h"
#include "uper/nn/learner_data_for_tests.h"

namespace uper {
namespace {

struct LayerCase {
  int kernel, stride;
  int height, width, channels, filters, count;  // of the input
  bool whole = false;                           // all are small whole numbers: exact
};

PictureWeights LayerShapeOf(const LayerCase& c) {
  PictureWeights call;
  call.in = {.height = c.height, .width = c.width, .channels = c.channels};
  call.out = {.height = (c.height - c.kernel) / c.stride + 1,
              .width = (c.width - c.kernel) / c.stride + 1,
              .channels = c.filters};
  call.spec = {.filters = c.filters, .kernel = c.kernel, .stride = c.stride};
  call.count = c.count;
  // A border of one position above and below, and to both sides.
  call.d_row = (call.out.width + 2) * c.filters;
  call.d_picture = (call.out.height + 2) * call.d_row;
  return call;
}

// d_w and behind it d_bias, in double.
std::vector<double> PlainGradient(const PictureWeights& call, std::span<const float> x,
                                  std::span<const float> d_out) {
  const int row = call.spec.kernel * call.in.channels;
  const int taps = call.spec.kernel * row;
  const int filters = call.out.channels;
  std::vector<double> result(std::size_t{1} * (taps + 1) * filters);
  const int positions = call.out.height * call.out.width;
  for (int place = 0; place < call.count * positions; ++place) {
    const int picture = place / positions;
    const int top = place % positions / call.out.width, left = place % call.out.width;
    const std::size_t at =
        call.d_row + filters + picture * call.d_picture + top * call.d_row + left * filters;
    const float* d = d_out.data() + at;
    const std::size_t first = picture * call.in.size() +
                              (top * call.in.width + left) * call.spec.stride * call.in.channels;
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

// The arrays of a layer, and the call with them. The border of d_out is not a number.
struct LayerArrays {
  explicit LayerArrays(const LayerCase& c) : call(LayerShapeOf(c)) {
    x = RandomFloats(std::size_t{1} * c.count * call.in.size(), "x");
    d = RandomFloats(std::size_t{1} * c.count * call.d_picture, "d");
    for (std::vector<float>* values : {&x, &d}) {
      for (float& value : *values) {
        if (c.whole) value = std::round(std::clamp(value, -3.0F, 3.0F));
      }
    }
    for (std::size_t i = 0; i < d.size(); ++i) {
      const int at = static_cast<int>(i % call.d_picture);
      const int top = at / call.d_row - 1, left = at % call.d_row / c.filters - 1;
      if (top < 0 || top >= call.out.height || left < 0 || left >= call.out.width) {
        d[i] = std::numeric_limits<float>::quiet_NaN();
      }
    }
    gpu_x = OnGpu(x);
    gpu_d = OnGpu(d);
    parts = Poisoned(PictureWeightParts(call));
    const std::size_t weights = std::size_t{1} * c.kernel * c.kernel * c.channels * c.filters;
    found = Poisoned(weights + c.filters);
    squares = OnGpu(
        std::vector<double>(PictureWeightSquares(call), std::numeric_limits<double>::quiet_NaN()));
    call.x = gpu_x.data();
    call.d_out = gpu_d.data() + call.d_row + c.filters;
    call.parts = parts.data();
    call.d_w = found.data();
    call.d_bias = found.data() + weights;
    call.squares = squares.data();
  }

  // Compared with plain loops. Returns d_w and d_bias.
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

  PictureWeights call;
  std::vector<float> x, d;
  DeviceBuffer<float> gpu_x, gpu_d, parts, found;
  DeviceBuffer<double> squares;
};

std::vector<float> CheckLayer(const LayerCase& c) {
  SCOPED_TRACE(testing::Message() << c.kernel << "/" << c.stride << " of " << c.height << "x"
                                  << c.width << "x" << c.channels << " to " << c.filters
                                  << " count " << c.count << " whole " << c.whole);
  const LayerArrays layer(c);
  LaunchPictureWeights(layer.call, nullptr);
  LaunchPictureSums({&layer.call, 1}, nullptr);
  return layer.Check(c.whole);
}

class PictureWeightsTest : public GpuTest {};

// One position; part of a segment, one and two of them; rows and columns beyond the last window;
// blocks with channels or filters that are not there; parts of one, two and three pictures.
TEST_F(PictureWeightsTest, AllSizes) {
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

TEST_F(PictureWeightsTest, AddsUpSeveralLayersAtOnce) {
  const LayerArrays layers[] = {LayerArrays({3, 1, 9, 9, 64, 64, 3, true}),
                                LayerArrays({4, 2, 20, 20, 32, 64, 33, true}),
                                LayerArrays({4, 2, 4, 4, 32, 16, 1, true})};
  std::vector<PictureWeights> calls;
  for (const LayerArrays& layer : layers) {
    LaunchPictureWeights(layer.call, nullptr);
    calls.push_back(layer.call);
  }
  LaunchPictureSums(calls, nullptr, Follow::kOverlap);
  for (const LayerArrays& layer : layers) layer.Check(true);
}

TEST_F(PictureWeightsTest, RepeatsBitForBit) {
  const LayerCase cases[] = {{4, 2, 20, 20, 32, 64, 32}, {3, 1, 9, 9, 64, 64, 32}};
  for (const LayerCase& c : cases) {
    const std::vector<float> first = CheckLayer(c);
    for (int i = 0; i < 2; ++i) EXPECT_TRUE(SameBits(CheckLayer(c), first));
  }
}

TEST(PictureWeightsSizeTest, SuitsSomeLayers) {
  const auto suits = [](const LayerCase& c) {
    const PictureWeights call = LayerShapeOf(c);
    return SuitsPictureWeights(call.in, call.out, call.spec);
  };
  EXPECT_TRUE(suits({4, 2, 20, 20, 32, 64, 1}));
  EXPECT_TRUE(suits({3, 1, 9, 9, 64, 64, 1}));
  EXPECT_TRUE(suits({3, 1, 9, 9, 16, 16, 1}));
  EXPECT_FALSE(suits({3, 2, 9, 9, 64, 64, 1}));
  EXPECT_FALSE(suits({8, 4, 84, 84, 32, 32, 1}));
  EXPECT_FALSE(suits({4, 2, 20, 20, 16, 64, 1}));
  EXPECT_FALSE(suits({3, 1, 9, 9, 64, 24, 1}));
  EXPECT_FALSE(suits({3, 1, 40, 40, 32, 32, 1}));
}

}  // namespace
}  // namespace uper
