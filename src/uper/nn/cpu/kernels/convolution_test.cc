#include "uper/nn/cpu/kernels/convolution.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "uper/nn/learner_data_for_tests.h"

namespace uper::cpu {
namespace {

struct Case {
  ImageShape input;
  ConvolutionSpec spec;

  std::size_t weights() const {
    return std::size_t{1} * spec.kernel * spec.kernel * input.channels * spec.filters;
  }
};

// Windows that overlap, that touch, and that leave a margin; filters and channels around the vector
// widths.
const std::vector<Case> kCases{
    {{10, 10, 4}, {16, 3, 1}}, {{9, 7, 5}, {7, 3, 2}},   {{12, 12, 4}, {32, 8, 4}},
    {{6, 5, 16}, {64, 4, 2}},  {{5, 5, 33}, {17, 3, 1}}, {{11, 6, 1}, {1, 2, 3}},
    {{4, 4, 3}, {5, 4, 1}},    {{8, 8, 70}, {20, 1, 1}},
};

// Calls visit(position, filter, index in x, index in w) for all terms of the convolution.
template <typename Visit>
void ForEachTerm(const Convolution& layer, const ConvolutionSpec& spec, const Visit& visit) {
  const ImageShape& in = layer.input();
  const ImageShape& out = layer.output();
  for (int y = 0; y < out.height; ++y) {
    for (int x = 0; x < out.width; ++x) {
      for (int f = 0; f < out.channels; ++f) {
        for (int tap = 0; tap < spec.kernel * spec.kernel * in.channels; ++tap) {
          const int c = tap % in.channels;
          const int row = y * spec.stride + tap / in.channels / spec.kernel;
          const int column = x * spec.stride + tap / in.channels % spec.kernel;
          visit(y * out.width + x, f, (row * in.width + column) * in.channels + c,
                tap * out.channels + f);
        }
      }
    }
  }
}

TEST(ConvolutionTest, ForwardAgreesWithTheSum) {
  for (const Case& c : kCases) {
    const Convolution layer(c.input, c.spec);
    const int filters = c.spec.filters;
    const auto x = RandomFloats(c.input.size(), "x");
    const auto w = RandomFloats(c.weights(), "w");
    const auto b = RandomFloats(filters, "b");
    std::vector<double> expected(layer.output().size());
    for (std::size_t i = 0; i < expected.size(); ++i) expected[i] = double{b[i % filters]};
    ForEachTerm(layer, c.spec, [&](int p, int f, int at_x, int at_w) {
      expected[p * filters + f] += double{x[at_x]} * double{w[at_w]};
    });
    for (double& value : expected) value = std::max(0.0, value);
    std::vector<float> y(expected.size());
    layer.Forward(x.data(), w.data(), b.data(), y.data());
    EXPECT_LT(RelativeError(y, expected), 2e-6) << filters;
  }
}

TEST(ConvolutionTest, BackwardAgreesWithTheSum) {
  constexpr int kBatch = 3;
  for (const Case& c : kCases) {
    const Convolution layer(c.input, c.spec);
    const int filters = c.spec.filters;
    const int out = layer.output().size();
    const auto x = RandomFloats(kBatch * c.input.size(), "x");
    const auto w = RandomFloats(c.weights(), "w");
    const auto dy = RandomFloats(kBatch * out, "dy");
    std::vector<double> expected_dx(x.size()), expected_dw(w.size()), expected_db(filters);
    for (int b = 0; b < kBatch; ++b) {
      ForEachTerm(layer, c.spec, [&](int p, int f, int at_x, int at_w) {
        const double d = dy[b * out + p * filters + f];
        expected_dx[b * c.input.size() + at_x] += d * double{w[at_w]};
        expected_dw[at_w] += d * double{x[b * c.input.size() + at_x]};
      });
      for (int i = 0; i < out; ++i) expected_db[i % filters] += double{dy[b * out + i]};
    }
    std::vector<float> wt(w.size()), dx(x.size(), 5), dw(w.size(), 5), db(filters, 5);
    layer.TransposeWeights(w.data(), wt.data());
    for (int b = 0; b < kBatch; ++b) {
      layer.BackwardInput(&dy[b * out], wt.data(), &dx[b * c.input.size()]);
    }
    for (int task = 0; task < layer.weight_tasks(); ++task) {
      layer.BackwardWeights(task, x.data(), dy.data(), kBatch, dw.data());
    }
    layer.BackwardBias(dy.data(), kBatch, db.data());
    EXPECT_LT(RelativeError(dx, expected_dx), 2e-6) << filters;
    EXPECT_LT(RelativeError(dw, expected_dw), 2e-6) << filters;
    EXPECT_LT(RelativeError(db, expected_db), 2e-6) << filters;
  }
}

}  // namespace
}  // namespace uper::cpu
