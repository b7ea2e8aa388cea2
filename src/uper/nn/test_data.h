#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "uper/base/random.h"

namespace uper {

// For tests of the kernels: repeatable numbers, and comparisons.

// Standard normal.
inline std::vector<float> RandomFloats(std::size_t count, std::string_view name) {
  RandomStream stream(1, name);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(stream.Normal());
  return values;
}

inline std::vector<int> RandomInts(std::size_t count, int bound, std::string_view name) {
  RandomStream stream(1, name);
  std::vector<int> values(count);
  for (int& value : values) value = static_cast<int>(stream.UniformInt(bound));
  return values;
}

// The same bits, and not only equal numbers.
inline bool SameBits(std::span<const float> x, std::span<const float> y) {
  return x.size() == y.size() && std::memcmp(x.data(), y.data(), x.size_bytes()) == 0;
}

// Largest difference, as a share of the largest entry of `expected` (if not all are zero).
template <typename Values, typename Expected>
double RelativeError(const Values& values, const Expected& expected) {
  double largest = 0;
  double difference = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double x = expected[i];
    largest = std::max(largest, std::abs(x));
    difference = std::max(difference, std::abs(x - static_cast<double>(values[i])));
  }
  if (values.size() != expected.size()) return 1e30;
  return largest > 0 ? difference / largest : difference;
}

}  // namespace uper
