#include "uper/replay/selectors/uniform_selector.h"

#include "uper/base/check.h"

namespace uper {
namespace {

SelectorOptions AllUniform(SelectorOptions options) {
  options.Validate();
  options.uniform_mix = 1;
  return options;
}

}  // namespace

UniformSelector::UniformSelector(std::size_t capacity, const SelectorOptions& options)
    : Selector(capacity, AllUniform(options)) {}

void UniformSelector::Update(std::span<const std::uint32_t> slots,
                             std::span<const float> priorities) {
  for (std::size_t j = 0; j < slots.size(); ++j) ExchangePriority(slots[j], priorities[j]);
}

void UniformSelector::Find(std::span<const double>, std::span<std::uint32_t>,
                           std::span<double>) const {
  UPER_CHECK(false, "a uniform selector has no masses to search");
}

}  // namespace uper
