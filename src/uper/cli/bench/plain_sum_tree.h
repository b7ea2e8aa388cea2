#pragma once

#include <cstddef>
#include <vector>

namespace uper::cli {

// The textbook sum tree: binary, one operation at a time, parents recomputed from their children.
// It is the baseline of `uper bench replay` and has no other user.
class PlainSumTree {
 public:
  explicit PlainSumTree(std::size_t capacity) {
    while (leaves_ < capacity) leaves_ *= 2;
    nodes_.resize(2 * leaves_);
  }

  double Total() const { return nodes_[1]; }
  double Get(std::size_t slot) const { return nodes_[leaves_ + slot]; }

  void Set(std::size_t slot, double mass) {
    std::size_t node = leaves_ + slot;
    nodes_[node] = mass;
    for (node /= 2; node >= 1; node /= 2) nodes_[node] = nodes_[2 * node] + nodes_[2 * node + 1];
  }

  std::size_t Find(double mass) const {
    std::size_t node = 1;
    while (node < leaves_) {
      node *= 2;
      if (mass >= nodes_[node]) mass -= nodes_[node++];
    }
    return node - leaves_;
  }

 private:
  std::size_t leaves_ = 1;
  std::vector<double> nodes_;  // node i has children 2i and 2i+1; the root is node 1
};

}  // namespace uper::cli
