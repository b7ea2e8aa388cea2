#include "uper/envs/atari/resample.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "uper/base/check.h"

namespace uper::atari {
namespace {

// The inputs of one output: weights of first, first + 1, ...
template <typename Weight>
using Window = std::pair<int, std::vector<Weight>>;

// All windows with the width of the widest. One that would end behind the last input starts earlier
// instead, with weights of 0.
template <typename Weight>
Taps<Weight> Aligned(const std::vector<Window<Weight>>& windows, int in) {
  Taps<Weight> taps;
  for (const auto& window : windows) {
    taps.width = std::max(taps.width, static_cast<int>(window.second.size()));
  }
  for (const auto& [first, weights] : windows) {
    const int start = std::min(first, in - taps.width);
    std::vector<Weight> row(static_cast<std::size_t>(taps.width));
    std::copy(weights.begin(), weights.end(), row.begin() + (first - start));
    taps.first.push_back(start);
    taps.weights.insert(taps.weights.end(), row.begin(), row.end());
  }
  return taps;
}

Window<int> BilinearWindow(int in, int out, int index) {
  const double scale = static_cast<double>(in) / out;
  const double support = std::max(scale, 1.0);
  const double center = (index + 0.5) * scale;
  // NOLINTBEGIN(bugprone-incorrect-roundings): to the bit as the originals round
  const int first = std::max(0, static_cast<int>(center - support + 0.5));
  const int end = std::min(in, static_cast<int>(center + support + 0.5));
  // NOLINTEND(bugprone-incorrect-roundings)
  std::vector<double> triangle;
  double sum = 0;
  for (int i = first; i < end; ++i) {
    const double weight = std::max(0.0, 1 - std::fabs((i - center + 0.5) * (1 / support)));
    triangle.push_back(weight);
    sum += weight;
  }
  std::vector<int> weights;
  for (const double weight : triangle) {
    // NOLINTNEXTLINE(bugprone-incorrect-roundings): to the bit as the original rounds
    weights.push_back(static_cast<int>(0.5 + weight / sum * (1 << kBilinearBits)));
  }
  while (weights.size() > 1 && weights.back() == 0) weights.pop_back();
  return {first, weights};
}

Window<float> AreaWindow(int in, int out, int index) {
  constexpr double kNothing = 1e-3;  // a smaller share of an input is left out
  const double scale = static_cast<double>(in) / out;
  const double begin = index * scale;
  const double end = begin + scale;
  const double cell = std::min(scale, in - begin);
  const int last = std::min(static_cast<int>(std::floor(end)), in - 1);
  const int whole = std::min(static_cast<int>(std::ceil(begin)), last);
  std::vector<float> weights;
  int first = whole;
  if (whole - begin > kNothing) {
    first = whole - 1;
    weights.push_back(static_cast<float>((whole - begin) / cell));
  }
  for (int i = whole; i < last; ++i) weights.push_back(static_cast<float>(1.0 / cell));
  if (end - last > kNothing) {
    weights.push_back(static_cast<float>(std::min(std::min(end - last, 1.0), cell) / cell));
  }
  return {first, weights};
}

}  // namespace

Taps<int> BilinearTaps(int in, int out) {
  UPER_CHECK(in > 0 && out > 0, "a resize needs sizes of at least 1");
  std::vector<Window<int>> windows;
  for (int i = 0; i < out; ++i) windows.push_back(BilinearWindow(in, out, i));
  return Aligned(windows, in);
}

Taps<float> AreaTaps(int in, int out) {
  UPER_CHECK(0 < out && out <= in, "an area resize makes a picture smaller");
  std::vector<Window<float>> windows;
  for (int i = 0; i < out; ++i) windows.push_back(AreaWindow(in, out, i));
  return Aligned(windows, in);
}

}  // namespace uper::atari
