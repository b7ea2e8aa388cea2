#pragma once

#include <cstddef>
#include <limits>

#include "uper/base/arithmetic.h"
#include "uper/core/host_device.h"

namespace uper {

// The arithmetic of trees with fan-out 8. Host and GPU compile the same source with the same order
// of operations, so equal leaves give equal bits on both.

inline constexpr std::size_t kTreeFanOut = 8;
inline constexpr std::size_t kTreeShift = 3;

struct SumReduction {
  static constexpr double kIdentity = 0;
  UPER_HOST_DEVICE static double Combine(double a, double b) { return a + b; }
};

struct MinReduction {
  static constexpr double kIdentity = std::numeric_limits<double>::infinity();
  UPER_HOST_DEVICE static double Combine(double a, double b) { return b < a ? b : a; }
};

// Reduces the eight values of a node in pairs.
template <typename Reduction>
UPER_HOST_DEVICE inline double ReduceNode(const double* v) {
  const double left =
      Reduction::Combine(Reduction::Combine(v[0], v[1]), Reduction::Combine(v[2], v[3]));
  const double right =
      Reduction::Combine(Reduction::Combine(v[4], v[5]), Reduction::Combine(v[6], v[7]));
  return Reduction::Combine(left, right);
}

// The child of a sum node that contains `rest`; `rest` becomes the remainder inside that child.
// Counting the prefix sums that `rest` reaches needs no branch (a branch would be mispredicted half
// the time). An empty child k is never the answer: its prefix sums p[k] and p[k + 1] are the same
// number, so `rest` reaches both or none. If rounding has carried `rest` beyond the node's sum, the
// result is the last child with mass; `rest` stays >= 0. REQUIRES: rest >= 0, the node has mass.
UPER_HOST_DEVICE inline std::size_t ChildFor(const double* v, double& rest) {
  const double v01 = v[0] + v[1];
  const double v23 = v[2] + v[3];
  const double v45 = v[4] + v[5];
  const double v67 = v[6] + v[7];
  double p[9];  // p[k] = sum of the children before k
  p[0] = 0;
  p[1] = v[0];
  p[2] = v01;
  p[3] = v01 + v[2];
  p[4] = v01 + v23;
  p[5] = p[4] + v[4];
  p[6] = p[4] + v45;
  p[7] = p[6] + v[6];
  p[8] = p[6] + v67;
  std::size_t k = 0;
  for (std::size_t j = 1; j <= 8; ++j) k += static_cast<std::size_t>(rest >= p[j]);
  if (k == 8) [[unlikely]] {
    k = 7;
    while (k > 0 && v[k] == 0) --k;
  }
  rest -= p[k];
  return k;
}

// A value that is neither negative nor NaN, as the proof above needs.
UPER_HOST_DEVICE inline double SearchableMass(double mass) { return mass > 0 ? mass : 0.0; }

// The positions of a tree's levels in one array of nodes: the leaves' nodes first, the top node
// last.
struct TreeShape {
  static constexpr std::size_t kMaxLevels = 11;  // for fewer than 2^32 leaves

  // REQUIRES: 1 <= leaves < 2^32.
  explicit TreeShape(std::size_t leaves) {
    std::size_t nodes = 0;
    std::size_t values = leaves;
    do {
      values = CeilDiv(values, kTreeFanOut);  // nodes of this level, values of the next
      level_begin[levels++] = nodes;
      nodes += values;
    } while (values > 1);
    level_begin[levels] = nodes;
  }

  UPER_HOST_DEVICE std::size_t NodesOf(std::size_t level) const {
    return level_begin[level + 1] - level_begin[level];
  }
  UPER_HOST_DEVICE std::size_t nodes() const { return level_begin[levels]; }

  std::size_t levels = 0;
  std::size_t level_begin[kMaxLevels + 1] = {};  // first node of each level, and the end
};

}  // namespace uper
