#include "uper/nn/initialization.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "uper/base/error.h"

namespace uper {
namespace {

TEST(InitializeUniformTest, EveryTensorIsUniformWithinItsBound) {
  const NetworkSpec spec = NatureNetwork({.actions = 6, .members = 2, .outputs = 51});
  const ParameterLayout layout(spec);
  std::vector<float> parameters(layout.size());
  RandomStream stream(7, "initialization");
  InitializeUniform(layout, stream, parameters);
  EXPECT_EQ(stream.position(), 2 * layout.size());
  // 1/sqrt(fan_in) of each layer by hand; a bias has the bound of its weights.
  const std::array<double, 10> bounds{0.0625,   0.0625,   0.044194, 0.044194, 0.041667,
                                      0.041667, 0.017857, 0.017857, 0.044194, 0.044194};
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    const ParameterView& view = layout.views()[i];
    const auto values = std::span(parameters).subspan(view.offset, view.size());
    constexpr int kBins = 16;
    std::array<double, kBins> counts{};
    double largest = 0;
    for (const float value : values) {
      largest = std::max(largest, std::abs(double{value}));
      ASSERT_LE(largest, bounds[i] * (1 + 1e-5)) << view.name;
      const double share = (double{value} / bounds[i] + 1) / 2;
      ++counts[std::clamp(static_cast<int>(share * kBins), 0, kBins - 1)];
    }
    // Chi-square with 15 degrees of freedom: above 45 with probability 8e-5.
    const double expected = static_cast<double>(values.size()) / kBins;
    double chi_square = 0;
    for (const double count : counts) chi_square += (count - expected) * (count - expected);
    EXPECT_LT(chi_square / expected, 45) << view.name;
    if (values.size() > 1000) {
      EXPECT_GT(largest, bounds[i] * 0.98) << view.name;
    }
  }
}

TEST(InitializeUniformTest, FollowsItsStream) {
  const ParameterLayout layout(MlpNetwork(3, {4}, {.actions = 2}));
  std::vector<float> a(layout.size()), b(layout.size()), c(layout.size());
  RandomStream first(1, "x"), again(1, "x"), other(2, "x");
  InitializeUniform(layout, first, a);
  InitializeUniform(layout, again, b);
  InitializeUniform(layout, other, c);
  EXPECT_EQ(a, b);
  EXPECT_NE(a, c);
  EXPECT_THROW(InitializeUniform(layout, first, std::span(a).first(3)), Error);
}

// Largest difference between the Gram matrix of `count` vectors and gain^2 times the identity.
// Entry e of vector i is at(i, e).
template <typename At>
double GramError(int count, int length, double gain, const At& at) {
  double error = 0;
  for (int i = 0; i < count; ++i) {
    for (int j = 0; j < count; ++j) {
      double product = 0;
      for (int e = 0; e < length; ++e) product += double{at(i, e)} * double{at(j, e)};
      error = std::max(error, std::abs(product - (i == j ? gain * gain : 0)));
    }
  }
  return error;
}

TEST(InitializeOrthogonalTest, ShorterSidesAreOrthonormal) {
  NetworkSpec spec = MinatarNetwork(4, {.actions = 3, .members = 2, .outputs = 5});
  spec.hidden_units = 20;
  spec.separate_hidden = true;
  const ParameterLayout layout(spec);
  std::vector<float> p(layout.size(), 1);
  RandomStream stream(3, "initialization");
  constexpr double kGain = 1.5;
  InitializeOrthogonal(layout, kGain, stream, p);

  const float* conv = &p[layout.Find("conv1/w").offset];  // [36, 16]
  EXPECT_LT(GramError(16, 36, kGain, [&](int i, int e) { return conv[e * 16 + i]; }), 1e-6);
  for (int k = 0; k < 2; ++k) {
    const float* hidden = &p[layout.Find("hidden/w").offset + k * 20];  // [1024, 2, 20]
    EXPECT_LT(GramError(20, 1024, kGain, [&](int i, int e) { return hidden[e * 40 + i]; }), 1e-6);
    const float* head = &p[layout.Find("head/w").offset + k * 100];  // [3, 2, 20, 5]
    const auto at = [&](int i, int e) { return head[(i / 5) * 200 + e * 5 + i % 5]; };
    EXPECT_LT(GramError(15, 20, kGain, at), 1e-6);
  }
  for (const char* name : {"conv1/b", "hidden/b", "head/b"}) {
    const ParameterView& view = layout.Find(name);
    for (std::size_t i = 0; i < view.size(); ++i) EXPECT_EQ(p[view.offset + i], 0);
  }
}

TEST(InitializeOrthogonalTest, WideLayersHaveOrthonormalRows) {
  const NetworkSpec spec = MlpNetwork(6, {9}, {.actions = 4, .outputs = 5});
  const ParameterLayout layout(spec);
  std::vector<float> p(layout.size());
  RandomStream stream(3, "initialization");
  InitializeOrthogonal(layout, 1, stream, p);
  EXPECT_LT(GramError(6, 9, 1, [&](int i, int e) { return p[i * 9 + e]; }), 1e-6);
  const float* head = &p[layout.Find("head/w").offset];  // [4, 1, 9, 5]
  const auto at = [&](int i, int e) { return head[(e / 5) * 45 + i * 5 + e % 5]; };
  EXPECT_LT(GramError(9, 20, 1, at), 1e-6);
}

}  // namespace
}  // namespace uper
