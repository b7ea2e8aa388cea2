#include "uper/replay/selectors/rank_selector.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "uper/base/check.h"

namespace uper {

RankSelector::RankSelector(std::size_t capacity, const SelectorOptions& options)
    : Selector(capacity, options) {
  cumulative_.reserve(capacity + 1);
  cumulative_.push_back(0);
}

// The bits of positive floats are ordered as the floats are.
std::uint64_t RankSelector::KeyOf(std::size_t slot, float priority) {
  return (std::uint64_t{~std::bit_cast<std::uint32_t>(priority)} << 32) | slot;
}

double RankSelector::MassOfRank(std::size_t rank) const {
  return std::pow(static_cast<double>(rank), -exponent());
}

void RankSelector::ExtendTable() {
  while (cumulative_.size() <= positive_count()) {
    cumulative_.push_back(cumulative_.back() + MassOfRank(cumulative_.size()));
  }
}

void RankSelector::Update(std::span<const std::uint32_t> slots, std::span<const float> priorities) {
  for (std::size_t j = 0; j < slots.size(); ++j) {
    const float former = ExchangePriority(slots[j], priorities[j]);
    if (former == priorities[j]) continue;
    if (former > 0) order_.erase(KeyOf(slots[j], former));
    if (priorities[j] > 0) order_.insert(KeyOf(slots[j], priorities[j]));
  }
  ExtendTable();
}

void RankSelector::Rebuild() {
  order_.clear();
  for (std::size_t slot = 0; slot < capacity(); ++slot) {
    if (priority(slot) > 0) order_.insert(KeyOf(slot, priority(slot)));
  }
  cumulative_.resize(1);
  ExtendTable();
}

double RankSelector::Mass(std::size_t slot) const {
  if (priority(slot) == 0) return 0;
  return MassOfRank(order_.order_of_key(KeyOf(slot, priority(slot))) + 1);
}

void RankSelector::Find(std::span<const double> fractions, std::span<std::uint32_t> slots,
                        std::span<double> masses) const {
  const auto begin = cumulative_.begin() + 1;
  const auto end = begin + static_cast<std::ptrdiff_t>(positive_count());
  for (std::size_t j = 0; j < fractions.size(); ++j) {
    // The first rank whose cumulative mass exceeds the target; the last one at the right edge.
    const auto found = std::min(std::upper_bound(begin, end, fractions[j] * TotalMass()), end - 1);
    const auto rank = static_cast<std::size_t>(found - begin) + 1;
    slots[j] = static_cast<std::uint32_t>(*order_.find_by_order(rank - 1));
    masses[j] = MassOfRank(rank);
  }
}

void RankSelector::CheckMasses() const {
  UPER_CHECK(order_.size() == positive_count(), "not every positive item is ranked");
  UPER_CHECK(cumulative_.size() > positive_count(), "the table of rank masses is too short");
  for (std::size_t r = 1; r < cumulative_.size(); ++r) {
    UPER_CHECK(cumulative_[r] == cumulative_[r - 1] + MassOfRank(r), "wrong cumulative mass");
  }
  for (const std::uint64_t key : order_) {
    const auto slot = static_cast<std::uint32_t>(key);
    UPER_CHECK(slot < capacity() && KeyOf(slot, priority(slot)) == key, "stale rank key");
  }
}

}  // namespace uper
