#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "uper/replay/trees/wide_tree.h"

namespace uper {

// The masses of slots 0..capacity-1, their sum and a search by cumulative mass: the core of
// proportional prioritization. All values are doubles; see WideTree for the structure and its
// invariants. Set and Find are O(log8 capacity); the batch forms do the same work and overlap cache
// misses. Not thread-safe for writing.
class SumTree {
 public:
  // All masses start at 0. REQUIRES: 1 <= capacity < 2^32.
  explicit SumTree(std::size_t capacity);

  std::size_t capacity() const { return tree_.size(); }
  double Total() const { return tree_.root(); }
  double Get(std::size_t slot) const { return tree_.leaf(slot); }

  // REQUIRES: 0 <= mass <= DBL_MAX / (2 * capacity) for all masses, so that their sum is finite;
  // otherwise the whole batch is refused.
  void Set(std::size_t slot, double mass);
  void SetMany(std::span<const std::uint32_t> slots, std::span<const double> masses);
  void Prefetch(std::size_t slot) const { tree_.Prefetch(slot); }

  // Sets every slot to mass(slot), O(capacity). The result equals that of any other way to these
  // masses, bit for bit.
  template <typename Mass>
  void Assign(Mass mass) {
    tree_.Assign(mass);
    CheckMasses();
  }

  // The slot whose interval of the cumulative sum contains `mass`. The result always has positive
  // mass, whatever the rounding and whatever `mass` is. A `mass` beyond the right edge gives the
  // last such slot; a negative one or NaN gives the first. REQUIRES: Total() > 0.
  std::size_t Find(double mass) const;
  // Find() for each mass of a batch.
  void FindMany(std::span<const double> masses, std::span<std::uint32_t> slots) const;

  // Throws Error(kInternal) with the reason if an invariant is broken. O(capacity).
  void CheckValid() const;

  static std::size_t MemoryBytes(std::size_t capacity) {
    return WideTree<SumReduction>::MemoryBytes(capacity);
  }

 private:
  void CheckMasses() const;

  WideTree<SumReduction> tree_;
  double max_mass_;
};

}  // namespace uper
