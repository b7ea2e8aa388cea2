#pragma once

#include "uper/replay/selectors/selector.h"

namespace uper {

// Draws every item alike, whatever its priority: P = 1 / size. It still stores priorities. This is
// the base class's uniform part with uniform_mix = 1; there are no masses. Every operation is O(1).
class UniformSelector final : public Selector {
 public:
  UniformSelector(std::size_t capacity, const SelectorOptions& options);

 private:
  void Update(std::span<const std::uint32_t> slots, std::span<const float> priorities) override;
  void Rebuild() override {}
  double TotalMass() const override { return 1; }
  double Mass(std::size_t) const override { return 0; }
  void Find(std::span<const double> fractions, std::span<std::uint32_t> slots,
            std::span<double> masses) const override;
  double SmallestMass() override { return 1; }
  void CheckMasses() const override {}
};

}  // namespace uper
