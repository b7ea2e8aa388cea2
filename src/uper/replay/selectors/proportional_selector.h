#pragma once

#include <optional>
#include <vector>

#include "uper/replay/selectors/selector.h"
#include "uper/replay/trees/sum_tree.h"

namespace uper {

// mass = priority^exponent * 2^(-age / recency_half_life), 0 for priority 0 (also with exponent 0).
// The age of an item is the number of newer ones. As all ages grow alike, the masses stay as they
// are: they are relative to a number of items that moves on every 64 half-lives, when all are
// derived afresh. Beyond 500 half-lives ages count no more. A sum tree finds slots. The
// first SmallestProbability() builds a min tree, which later updates maintain. Memory: 13.2 bytes
// per slot, 22.3 with the min tree.
class ProportionalSelector final : public Selector {
 public:
  ProportionalSelector(std::size_t capacity, const SelectorOptions& options);

  static std::size_t MemoryBytes(std::size_t capacity) {
    return capacity * sizeof(float) + SumTree::MemoryBytes(capacity);
  }

 private:
  void Update(std::span<const std::uint32_t> slots, std::span<const float> priorities) override;
  void Rebuild() override;
  double TotalMass() const override { return sums_.Total(); }
  double Mass(std::size_t slot) const override { return sums_.Get(slot); }
  void Find(std::span<const double> fractions, std::span<std::uint32_t> slots,
            std::span<double> masses) const override;
  double SmallestMass() override;
  void CheckMasses() const override;
  bool AgesChanged() override;

  double MassOf(std::size_t slot, float priority) const;
  double AgeFactor(std::size_t slot) const;
  void UpdateOne(std::uint32_t slot, float priority);
  void UpdateMinimum(WideTree<MinReduction>& minimum, std::span<const std::uint32_t> slots);

  SumTree sums_;
  std::optional<WideTree<MinReduction>> minimum_;  // of the positive masses
  std::vector<double> masses_;                     // of the batch being set
  double age_base_ = 0;                            // number of the item that has the age factor 1
  // Priority and mass of the last single item: new items mostly enter with the same priority.
  float last_priority_ = 0;
  double last_mass_ = 0;
};

}  // namespace uper
