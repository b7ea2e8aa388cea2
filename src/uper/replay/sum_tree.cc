#include "uper/replay/sum_tree.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string>

#include "uper/base/check.h"

namespace uper {
namespace {

using Node = WideTree<SumReduction>::Node;
constexpr std::size_t kFanOut = WideTree<SumReduction>::kFanOut;

// How many searches are in flight together: enough to hide a cache miss, few enough to stay in L1.
constexpr std::size_t kLanes = 32;

// The child of a node into which `rest` falls; `rest` becomes what is left inside it. Counting the
// prefix sums that `rest` reaches needs no branch (a branch would be mispredicted half the time).
// An empty child k is never the answer: its prefix sums p[k] and p[k + 1] are the same number, so
// `rest` reaches both or none. If rounding has carried `rest` past the node's sum, the last child
// with mass is taken; `rest` stays >= 0. REQUIRES: rest >= 0, the node has mass.
inline std::size_t ChildFor(const Node& node, double& rest) {
  const auto& v = node.value;
  const double v01 = v[0] + v[1];
  const double v23 = v[2] + v[3];
  const double v45 = v[4] + v[5];
  const double v67 = v[6] + v[7];
  std::array<double, 9> p;  // p[k] = sum of the children before k
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

// Not negative and not NaN, as the proof above needs.
inline double Sanitized(double mass) { return mass > 0 ? mass : 0.0; }

}  // namespace

SumTree::SumTree(std::size_t capacity)
    : tree_(capacity),
      max_mass_(std::numeric_limits<double>::max() / 2 / static_cast<double>(capacity)) {
  UPER_CHECK(capacity <= std::numeric_limits<std::uint32_t>::max(), "slots are 32-bit numbers");
}

void SumTree::Set(std::size_t slot, double mass) {
  UPER_CHECK(slot < capacity(), "slot out of range");
  UPER_CHECK(mass >= 0 && mass <= max_mass_, "a mass must be finite and not negative");
  tree_.Set(slot, mass);
}

void SumTree::SetMany(std::span<const std::uint32_t> slots, std::span<const double> masses) {
  UPER_CHECK(slots.size() == masses.size(), "one mass a slot");
  bool valid = true;
  for (std::size_t j = 0; j < slots.size(); ++j) {
    valid &= slots[j] < capacity() && masses[j] >= 0 && masses[j] <= max_mass_;
  }
  UPER_CHECK(valid, "slots must be in range, masses finite and not negative");
  tree_.SetMany(slots, masses);
}

std::size_t SumTree::Find(double mass) const {
  UPER_CHECK(Total() > 0, "nothing to find in an empty tree");
  double rest = Sanitized(mass);
  std::size_t index = 0;
  for (std::size_t level = tree_.levels(); level-- > 0;) {
    index = index * kFanOut + ChildFor(tree_.level_nodes(level)[index], rest);
  }
  return index;
}

void SumTree::FindMany(std::span<const double> masses, std::span<std::uint32_t> slots) const {
  UPER_CHECK(masses.size() == slots.size(), "one slot a mass");
  UPER_CHECK(Total() > 0, "nothing to find in an empty tree");
  std::array<double, kLanes> rest;
  std::array<std::size_t, kLanes> index;
  for (std::size_t begin = 0; begin < masses.size(); begin += kLanes) {
    const std::size_t lanes = std::min(kLanes, masses.size() - begin);
    for (std::size_t j = 0; j < lanes; ++j) rest[j] = Sanitized(masses[begin + j]);
    index.fill(0);
    for (std::size_t level = tree_.levels(); level-- > 0;) {
      const Node* nodes = tree_.level_nodes(level);
      const Node* below = tree_.level_nodes(level > 0 ? level - 1 : 0);
      for (std::size_t j = 0; j < lanes; ++j) {
        index[j] = index[j] * kFanOut + ChildFor(nodes[index[j]], rest[j]);
        if (level > 0) __builtin_prefetch(&below[index[j]]);
      }
    }
    for (std::size_t j = 0; j < lanes; ++j) slots[begin + j] = static_cast<std::uint32_t>(index[j]);
  }
}

void SumTree::CheckMasses() const {
  for (std::size_t i = 0; i < capacity(); ++i) {
    UPER_CHECK(Get(i) >= 0 && Get(i) <= max_mass_,
               "mass of slot " + std::to_string(i) + " is not finite or negative");
  }
}

void SumTree::CheckValid() const {
  CheckMasses();
  tree_.CheckValid();
}

}  // namespace uper
