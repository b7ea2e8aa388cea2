#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "uper/base/check.h"
#include "uper/replay/trees/tree_math.h"

namespace uper {

// A complete tree of fan-out 8 over an array of doubles; a node is one cache line that holds its
// eight children's values. Every value above the leaves is Reduce() of a node below, always in the
// same pairwise order and never by adding a difference. So the whole tree is a pure function of its
// leaves: it does not drift, and a rebuilt tree is equal bit for bit.
//
// Equivalently, it is a binary tree that keeps only every third level in memory.
//
// Memory: about 9.15 bytes per leaf. Set: O(log8 n). Not thread-safe for writing; concurrent reads
// are fine. Reduction must be commutative: Combine(a, b) == Combine(b, a).
template <typename Reduction>
class WideTree {
 public:
  static constexpr std::size_t kFanOut = kTreeFanOut;
  static constexpr std::size_t kShift = kTreeShift;
  struct alignas(64) Node {
    std::array<double, kFanOut> value;
  };

  // All leaves start as the reduction's identity. REQUIRES: leaves >= 1.
  explicit WideTree(std::size_t leaves) : leaves_(leaves), shape_(CheckedShape(leaves)) {
    nodes_.assign(shape_.nodes(), Identity());
  }

  std::size_t size() const { return leaves_; }
  double root() const { return root_; }
  double leaf(std::size_t i) const { return nodes_[i >> kShift].value[i % kFanOut]; }

  void Set(std::size_t i, double value) {
    UPER_DCHECK(i < leaves_, "leaf out of range");
    for (std::size_t level = 0; level < levels(); ++level) {
      std::array<double, kFanOut>& v = nodes_[shape_.level_begin[level] + (i >> kShift)].value;
      const std::size_t k = i % kFanOut;
      v[k] = value;
      // Reduce(node), but the changed value stays in a register instead of passing through memory
      // (half the time); equal because Combine is commutative.
      const std::size_t pair = (k & 6U) ^ 2U;
      const std::size_t four = (k & 4U) ^ 4U;
      value = Reduction::Combine(value, v[k ^ 1U]);
      value = Reduction::Combine(value, Reduction::Combine(v[pair], v[pair + 1]));
      value = Reduction::Combine(value,
                                 Reduction::Combine(Reduction::Combine(v[four], v[four + 1]),
                                                    Reduction::Combine(v[four + 2], v[four + 3])));
      i >>= kShift;
    }
    root_ = value;
  }

  // Sets many leaves; if one occurs twice, the last value wins. It works level by level, so that
  // the cache misses of different items overlap. A level with no more nodes than items is
  // recomputed whole, so shared ancestors cost once.
  void SetMany(std::span<const std::uint32_t> leaves, std::span<const double> values) {
    UPER_CHECK(leaves.size() == values.size(), "one value per leaf");
    if (leaves.empty()) return;
    if (leaves.size() == 1) return Set(leaves[0], values[0]);
    for (std::size_t j = 0; j < leaves.size(); ++j) {
      UPER_DCHECK(leaves[j] < leaves_, "leaf out of range");
      nodes_[leaves[j] >> kShift].value[leaves[j] % kFanOut] = values[j];
    }
    std::size_t shift = kShift;
    std::size_t level = 0;
    for (; level + 1 < levels() && NodesOf(level) > leaves.size(); ++level, shift += kShift) {
      const Node* nodes = &nodes_[shape_.level_begin[level]];
      Node* parents = &nodes_[shape_.level_begin[level + 1]];
      std::size_t done = leaves_;  // neighbors share nodes, which are final at this point
      for (const std::uint32_t leaf : leaves) {
        const std::size_t n = leaf >> shift;
        if (n == done) continue;
        done = n;
        parents[n >> kShift].value[n % kFanOut] = Reduce(nodes[n]);
      }
    }
    RecomputeFrom(level);
  }

  // Prefetches the cache lines that Set() and SetMany() will touch first.
  void Prefetch(std::size_t i) const {
    __builtin_prefetch(&nodes_[i >> kShift], 1);
    if (levels() > 1) __builtin_prefetch(&nodes_[shape_.level_begin[1] + (i >> (2 * kShift))], 1);
  }

  // Sets leaf i to value(i) for every i and rebuilds everything, O(n).
  template <typename Value>
  void Assign(Value value) {
    for (std::size_t i = 0; i < leaves_; ++i) nodes_[i >> kShift].value[i % kFanOut] = value(i);
    RecomputeFrom(0);
  }

  // Throws Error(kInternal) unless every value above the leaves is the reduction of its children.
  // O(n).
  void CheckValid() const {
    for (std::size_t level = 0; level + 1 < levels(); ++level) {
      for (std::size_t n = 0; n < NodesOf(level); ++n) {
        const double parent =
            nodes_[shape_.level_begin[level + 1] + (n >> kShift)].value[n % kFanOut];
        UPER_CHECK(parent == Reduce(nodes_[shape_.level_begin[level] + n]),
                   "stale inner value at level " + std::to_string(level + 1) + ", node " +
                       std::to_string(n));
      }
    }
    UPER_CHECK(root_ == Reduce(nodes_.back()), "stale root");
    for (std::size_t i = leaves_; i < NodesOf(0) * kFanOut; ++i) {
      UPER_CHECK(leaf(i) == Reduction::kIdentity, "padding behind the last leaf is not empty");
    }
  }

  // For searches from the root: level levels() - 1 is one node, level 0 holds the leaves.
  std::size_t levels() const { return shape_.levels; }
  const Node* level_nodes(std::size_t level) const { return &nodes_[shape_.level_begin[level]]; }

  static std::size_t MemoryBytes(std::size_t leaves) {
    return TreeShape(leaves).nodes() * sizeof(Node);
  }

 private:
  static Node Identity() {
    Node node;
    node.value.fill(Reduction::kIdentity);
    return node;
  }

  static TreeShape CheckedShape(std::size_t leaves) {
    UPER_CHECK(leaves >= 1 && leaves <= 0xFFFFFFFFU, "a tree has 1 to 2^32 - 1 leaves");
    return TreeShape(leaves);
  }

  static double Reduce(const Node& node) { return ReduceNode<Reduction>(node.value.data()); }

  std::size_t NodesOf(std::size_t level) const { return shape_.NodesOf(level); }

  // Recomputes everything above the given level.
  void RecomputeFrom(std::size_t level) {
    for (; level + 1 < levels(); ++level) {
      const Node* nodes = &nodes_[shape_.level_begin[level]];
      Node* parents = &nodes_[shape_.level_begin[level + 1]];
      const std::size_t count = NodesOf(level);
      for (std::size_t n = 0; n < count; ++n) {
        parents[n >> kShift].value[n % kFanOut] = Reduce(nodes[n]);
      }
    }
    root_ = Reduce(nodes_.back());
  }

  std::size_t leaves_;
  TreeShape shape_;
  std::vector<Node> nodes_;  // leaves first, the top node last
  double root_ = Reduction::kIdentity;
};

}  // namespace uper
