#pragma once

#include <cstddef>
#include <cstdint>
#include <ext/pb_ds/assoc_container.hpp>
#include <ext/pb_ds/tree_policy.hpp>
#include <functional>
#include <vector>

#include "uper/replay/selectors/selector.h"

namespace uper {

// mass = rank^-exponent, rank 1 being the largest priority; equal priorities are ranked by slot,
// lower first. Items of priority 0 have no rank and mass 0. Ranks are exact at every draw. A binary
// search in a table of cumulative rank masses finds the rank to draw. An order-statistics tree maps
// between ranks and slots in O(log n). Memory: about 64 bytes per item of positive priority.
class RankSelector final : public Selector {
 public:
  RankSelector(std::size_t capacity, const SelectorOptions& options);

 private:
  // Ascending keys are descending priorities, then ascending slots: see KeyOf.
  using Order =
      __gnu_pbds::tree<std::uint64_t, __gnu_pbds::null_type, std::less<std::uint64_t>,
                       __gnu_pbds::rb_tree_tag, __gnu_pbds::tree_order_statistics_node_update>;

  void Update(std::span<const std::uint32_t> slots, std::span<const float> priorities) override;
  void Rebuild() override;
  double TotalMass() const override { return cumulative_[positive_count()]; }
  double Mass(std::size_t slot) const override;
  void Find(std::span<const double> fractions, std::span<std::uint32_t> slots,
            std::span<double> masses) const override;
  double SmallestMass() override { return MassOfRank(positive_count()); }
  void CheckMasses() const override;

  static std::uint64_t KeyOf(std::size_t slot, float priority);
  double MassOfRank(std::size_t rank) const;
  // Makes cumulative_ reach up to the number of ranked items.
  void ExtendTable();

  Order order_;                     // of all items with positive priority
  std::vector<double> cumulative_;  // [r] = mass of ranks 1..r together; [0] = 0
};

}  // namespace uper
