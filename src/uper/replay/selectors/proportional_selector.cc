#include "uper/replay/selectors/proportional_selector.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>

#include "uper/base/check.h"
#include "uper/replay/selectors/selection_math.h"

namespace uper {
namespace {

constexpr double kRebaseHalfLives = 64;
constexpr double kMostHalfLives = 500;
constexpr std::size_t kPrefetchAhead = 32;  // items; pow runs while their cache misses are served

// The value of an item in the min tree: an empty item must not count as the smallest.
double PositiveOrIdentity(double mass) { return mass > 0 ? mass : MinReduction::kIdentity; }

}  // namespace

ProportionalSelector::ProportionalSelector(std::size_t capacity, const SelectorOptions& options)
    : Selector(capacity, options), sums_(capacity) {}

double ProportionalSelector::MassOf(std::size_t slot, float priority) const {
  const double mass = PriorityMass(priority, exponent());
  return options().recency_half_life == 0 || mass == 0 ? mass : mass * AgeFactor(slot);
}

double ProportionalSelector::AgeFactor(std::size_t slot) const {
  const double newer = static_cast<double>(NumberOf(slot)) - age_base_;
  return std::exp2(std::max(newer / options().recency_half_life, -kMostHalfLives));
}

bool ProportionalSelector::AgesChanged() {
  const double half_life = options().recency_half_life;
  if (half_life == 0) return false;
  const double period = kRebaseHalfLives * half_life;
  const double base = std::floor(static_cast<double>(appended()) / period) * period;
  return std::exchange(age_base_, base) != base;
}

void ProportionalSelector::UpdateOne(std::uint32_t slot, float priority) {
  if (priority != last_priority_ || options().recency_half_life > 0) {
    last_mass_ = MassOf(slot, priority);
    last_priority_ = priority;
  }
  ExchangePriority(slot, priority);
  sums_.Set(slot, last_mass_);
}

void ProportionalSelector::Update(std::span<const std::uint32_t> slots,
                                  std::span<const float> priorities) {
  if (slots.size() == 1) {
    UpdateOne(slots[0], priorities[0]);
  } else {
    masses_.resize(slots.size());
    const bool same_for_all_ages = options().recency_half_life == 0;
    const auto prefetch = [&](std::size_t j) {
      PrefetchPriority(slots[j]);
      sums_.Prefetch(slots[j]);
    };
    for (std::size_t j = 0; j < std::min(kPrefetchAhead, slots.size()); ++j) prefetch(j);
    for (std::size_t j = 0; j < slots.size(); ++j) {
      if (j + kPrefetchAhead < slots.size()) prefetch(j + kPrefetchAhead);
      const bool again = same_for_all_ages && j > 0 && priorities[j] == priorities[j - 1];
      masses_[j] = again ? masses_[j - 1] : MassOf(slots[j], priorities[j]);
      ExchangePriority(slots[j], priorities[j]);
    }
    sums_.SetMany(slots, masses_);
  }
  if (minimum_) UpdateMinimum(*minimum_, slots);
}

void ProportionalSelector::UpdateMinimum(WideTree<MinReduction>& minimum,
                                         std::span<const std::uint32_t> slots) {
  masses_.resize(slots.size());
  for (std::size_t j = 0; j < slots.size(); ++j) {
    masses_[j] = PositiveOrIdentity(sums_.Get(slots[j]));
  }
  minimum.SetMany(slots, masses_);
}

void ProportionalSelector::Rebuild() {
  last_priority_ = 0;
  last_mass_ = 0;
  sums_.Assign([this](std::size_t slot) { return MassOf(slot, priority(slot)); });
  if (minimum_) {
    minimum_->Assign([this](std::size_t slot) { return PositiveOrIdentity(sums_.Get(slot)); });
  }
}

void ProportionalSelector::Find(std::span<const double> fractions, std::span<std::uint32_t> slots,
                                std::span<double> masses) const {
  for (std::size_t j = 0; j < fractions.size(); ++j) masses[j] = fractions[j] * sums_.Total();
  sums_.FindMany(masses, slots);
  for (std::size_t j = 0; j < slots.size(); ++j) masses[j] = sums_.Get(slots[j]);
}

double ProportionalSelector::SmallestMass() {
  if (!minimum_) {
    minimum_.emplace(capacity());
    minimum_->Assign([this](std::size_t slot) { return PositiveOrIdentity(sums_.Get(slot)); });
  }
  return minimum_->root();
}

void ProportionalSelector::CheckMasses() const {
  sums_.CheckValid();
  if (minimum_) minimum_->CheckValid();
  for (std::size_t slot = 0; slot < capacity(); ++slot) {
    UPER_CHECK(sums_.Get(slot) == MassOf(slot, priority(slot)),
               "mass and priority of slot " + std::to_string(slot) + " disagree");
    UPER_CHECK(!minimum_ || minimum_->leaf(slot) == PositiveOrIdentity(sums_.Get(slot)),
               "the min tree disagrees at slot " + std::to_string(slot));
  }
}

}  // namespace uper
