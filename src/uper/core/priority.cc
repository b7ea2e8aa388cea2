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

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

bool Valid(double x) { return x >= 0 && x <= std::numeric_limits<double>::max(); }

Priority Limited(double value, const PriorityLimits& limits) {
  if (std::isnan(value)) return {.value = kNan};
  // Adding 0 turns -0 into 0.
  return {.value = std::min(value + 0.0, limits.cap), .capped = value > limits.cap};
}

// A rule that is the input itself.
Priority FromInput(double input, const PriorityLimits& limits) {
  return Limited(Valid(input) ? input : kNan, limits);
}

// A rule of E (or E_delta) and A, which divides by A.
template <typename Formula>
Priority FromRatio(double epistemic, double aleatoric, const PriorityLimits& limits,
                   Formula formula) {
  if (!Valid(epistemic) || !Valid(aleatoric)) return {.value = kNan};
  Priority priority = Limited(formula(epistemic, aleatoric, limits.aleatoric_floor), limits);
  priority.floored = limits.aleatoric_floor >= aleatoric;
  return priority;
}

template <int kPower>
double PowerRatio(double epistemic, double aleatoric, double floor) {
  return RatioEpistemicPowerTotal(epistemic, aleatoric, kPower, floor);
}

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

Priority ComputePriority(PriorityRule rule, const PriorityInputs& inputs,
                         const PriorityLimits& limits) {
  const Uncertainty& u = inputs.uncertainty;
  switch (rule) {
    case PriorityRule::kUniform:
      return Limited(1, limits);
    case PriorityRule::kTd:
      return FromInput(inputs.td_error, limits);
    case PriorityRule::kCounts:
      return Limited(Valid(inputs.visits) ? 1 / std::sqrt(1 + inputs.visits) : kNan, limits);
    case PriorityRule::kOracle:
      return FromInput(inputs.oracle_distance, limits);
    case PriorityRule::kTotal:
      return FromInput(u.total, limits);
    case PriorityRule::kTotalDelta:
      return FromInput(u.total_delta, limits);
    case PriorityRule::kEpistemic:
      return FromInput(u.epistemic, limits);
    case PriorityRule::kEpistemicDelta:
      return FromInput(u.epistemic_delta, limits);
    case PriorityRule::kInfoGain:
      return FromRatio(u.epistemic, u.aleatoric, limits, InfoGain);
    case PriorityRule::kInfoGainDelta:
      return FromRatio(u.epistemic_delta, u.aleatoric, limits, InfoGain);
    case PriorityRule::kRatioEa:
      return FromRatio(u.epistemic, u.aleatoric, limits, RatioEpistemicAleatoric);
    case PriorityRule::kRatioEaDelta:
      return FromRatio(u.epistemic_delta, u.aleatoric, limits, RatioEpistemicAleatoric);
    case PriorityRule::kRatioEu:
      return FromRatio(u.epistemic, u.aleatoric, limits, PowerRatio<1>);
    case PriorityRule::kRatioEuDelta:
      return FromRatio(u.epistemic_delta, u.aleatoric, limits, PowerRatio<1>);
    case PriorityRule::kRatioE2u:
      return FromRatio(u.epistemic, u.aleatoric, limits, PowerRatio<2>);
    case PriorityRule::kRatioE2uDelta:
      return FromRatio(u.epistemic_delta, u.aleatoric, limits, PowerRatio<2>);
    case PriorityRule::kRatioE3u:
      return FromRatio(u.epistemic, u.aleatoric, limits, PowerRatio<3>);
    case PriorityRule::kRatioE3uDelta:
      return FromRatio(u.epistemic_delta, u.aleatoric, limits, PowerRatio<3>);
  }
  return {.value = kNan};
}

}  // namespace uper
