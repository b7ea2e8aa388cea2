#pragma once

#include "uper/replay/selectors/selector.h"

namespace uper {

// Keeps the ring and the raw priorities of a replay memory that a device (a GPU) draws from. The
// priorities are those of the last LoadDevicePriorities(). It has no masses and cannot draw. Every
// operation is O(1).
class MirrorSelector final : public Selector {
 public:
  MirrorSelector(std::size_t capacity, const SelectorOptions& options)
      : Selector(capacity, options) {}

 private:
  void Update(std::span<const std::uint32_t> slots, std::span<const float> priorities) override {
    for (std::size_t j = 0; j < slots.size(); ++j) ExchangePriority(slots[j], priorities[j]);
  }
  void Rebuild() override {}
  double TotalMass() const override { return 1; }
  double Mass(std::size_t slot) const override;
  void Find(std::span<const double> fractions, std::span<std::uint32_t> slots,
            std::span<double> masses) const override;
  double SmallestMass() override;
  void CheckMasses() const override {}
};

}  // namespace uper
