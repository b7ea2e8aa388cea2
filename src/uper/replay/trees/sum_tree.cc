#include "uper/replay/trees/sum_tree.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string>

#include "uper/base/check.h"

namespace uper {
namespace {

using Node = WideTree<SumReduction>::Node;
constexpr std::size_t kFanOut = WideTree<SumReduction>::kFanOut;

// Searches in flight together: enough to hide a cache miss, few enough to stay in L1.
constexpr std::size_t kLanes = 32;

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
  double rest = SearchableMass(mass);
  std::size_t index = 0;
  for (std::size_t level = tree_.levels(); level-- > 0;) {
    index = index * kFanOut + ChildFor(tree_.level_nodes(level)[index].value.data(), rest);
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
    for (std::size_t j = 0; j < lanes; ++j) rest[j] = SearchableMass(masses[begin + j]);
    index.fill(0);
    for (std::size_t level = tree_.levels(); level-- > 0;) {
      const Node* nodes = tree_.level_nodes(level);
      const Node* below = tree_.level_nodes(level > 0 ? level - 1 : 0);
      for (std::size_t j = 0; j < lanes; ++j) {
        index[j] = index[j] * kFanOut + ChildFor(nodes[index[j]].value.data(), rest[j]);
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
