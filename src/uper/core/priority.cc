#include "uper/core/priority.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "uper/base/check.h"

namespace uper {
namespace {

struct NamedRule {
  PriorityRule rule;
  std::string_view name;
};

// In the order of the enumeration, so that a rule is its own index.
constexpr std::array kRules = {
    NamedRule{PriorityRule::kUniform, "uniform"},
    NamedRule{PriorityRule::kTd, "td"},
    NamedRule{PriorityRule::kCounts, "counts"},
    NamedRule{PriorityRule::kOracle, "oracle"},
    NamedRule{PriorityRule::kTotal, "total"},
    NamedRule{PriorityRule::kTotalDelta, "total_delta"},
    NamedRule{PriorityRule::kEpistemic, "epistemic"},
    NamedRule{PriorityRule::kEpistemicDelta, "epistemic_delta"},
    NamedRule{PriorityRule::kInfoGain, "info_gain"},
    NamedRule{PriorityRule::kInfoGainDelta, "info_gain_delta"},
    NamedRule{PriorityRule::kRatioEa, "ratio_ea"},
    NamedRule{PriorityRule::kRatioEaDelta, "ratio_ea_delta"},
    NamedRule{PriorityRule::kRatioEu, "ratio_eu"},
    NamedRule{PriorityRule::kRatioEuDelta, "ratio_eu_delta"},
    NamedRule{PriorityRule::kRatioE2u, "ratio_e2u"},
    NamedRule{PriorityRule::kRatioE2uDelta, "ratio_e2u_delta"},
    NamedRule{PriorityRule::kRatioE3u, "ratio_e3u"},
    NamedRule{PriorityRule::kRatioE3uDelta, "ratio_e3u_delta"},
};

constexpr auto kRuleValues = [] {
  std::array<PriorityRule, kRules.size()> values{};
  for (std::size_t i = 0; i < kRules.size(); ++i) values[i] = kRules[i].rule;
  return values;
}();

constexpr bool InEnumerationOrder() {
  for (std::size_t i = 0; i < kRules.size(); ++i) {
    if (static_cast<std::size_t>(kRules[i].rule) != i) return false;
  }
  return true;
}
static_assert(InEnumerationOrder());

}  // namespace

std::string_view PriorityRuleName(PriorityRule rule) {
  const auto index = static_cast<std::size_t>(rule);
  UPER_CHECK(index < kRules.size(), "not a priority rule");
  return kRules[index].name;
}

std::optional<PriorityRule> PriorityRuleFromName(std::string_view name) {
  const auto* found =
      std::find_if(kRules.begin(), kRules.end(), [&](const auto& r) { return r.name == name; });
  if (found == kRules.end()) return std::nullopt;
  return found->rule;
}

std::span<const PriorityRule> AllPriorityRules() { return kRuleValues; }

}  // namespace uper
