#pragma once

#include <cmath>
#include <cstddef>
#include <iterator>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "uper/core/host_device.h"
#include "uper/core/uncertainty.h"

namespace uper {

// The rules that can prioritize the replay memory; kPriorityRules below has their formulas. A rule
// with `_delta` uses E_delta, which contains the distance to the target; the others use E alone.
enum class PriorityRule {
  kUniform,
  kTd,
  kCounts,
  kOracle,
  kTotal,
  kTotalDelta,
  kEpistemic,
  kEpistemicDelta,
  kInfoGain,
  kInfoGainDelta,  // UPER
  kRatioEa,
  kRatioEaDelta,
  kRatioEu,
  kRatioEuDelta,
  kRatioE2u,
  kRatioE2uDelta,
  kRatioE3u,
  kRatioE3uDelta,
};

// Keeps priorities finite.
struct PriorityLimits {
  double aleatoric_floor = 1e-10;  // added to A wherever A is a denominator; > 0
  double cap = 100;                // largest priority handed out; > 0 and finite

  bool operator==(const PriorityLimits&) const = default;
};

// The inputs of the rules. A rule reads only the fields that PriorityNeeds names.
struct PriorityInputs {
  Uncertainty uncertainty;
  double td_error = 0;         // mean over members of |delta_k|
  double visits = 0;           // how often the item was used
  double oracle_distance = 0;  // |true mean - Q|
};

// A priority, and which limit changed it (both are logged).
struct Priority {
  double value = 0;
  bool floored = false;  // the floor was at least as large as A, in a rule that divides by it
  bool capped = false;
};

// Which fields of PriorityInputs a rule reads.
struct PriorityNeeds {
  bool td_error = false;
  bool uncertainty = false;
  bool visits = false;
  bool truth = false;  // oracle_distance: known in simulations only
};

// A rule's name and formula, and the properties that are checked before it is used.
struct PriorityRuleInfo {
  PriorityRule rule{};       // RegisterPriorityRule() sets it
  std::string_view name;     // as users write it
  std::string_view formula;  // for documents
  PriorityNeeds needs = {};
  // It divides by A alone, so it needs a distribution of returns.
  bool divides_by_aleatoric = false;
  // It reads the disagreement E without the distance to the target, which is 0 for one member.
  bool zero_for_one_member = false;
  // The formula of a registered rule. nullptr: the rule is a case of ComputePriority.
  Priority (*compute)(const PriorityInputs&, const PriorityLimits&) = nullptr;

  // Whether agents with a network can compute everything that the rule needs.
  constexpr bool for_networks() const { return !needs.visits && !needs.truth; }
};

// The built-in rules in the order of the enumeration. The names in configurations, the checks of
// configurations and the documents come from this table.
inline constexpr PriorityRuleInfo kPriorityRules[] = {
    {.rule = PriorityRule::kUniform, .name = "uniform", .formula = "1"},
    {.rule = PriorityRule::kTd,
     .name = "td",
     .formula = "mean over members of |target - Q_k|",
     .needs = {.td_error = true}},
    {.rule = PriorityRule::kCounts,
     .name = "counts",
     .formula = "1 / sqrt(1 + visits)",
     .needs = {.visits = true}},
    {.rule = PriorityRule::kOracle,
     .name = "oracle",
     .formula = "|true mean - Q|",
     .needs = {.truth = true}},
    {.rule = PriorityRule::kTotal, .name = "total", .formula = "U", .needs = {.uncertainty = true}},
    {.rule = PriorityRule::kTotalDelta,
     .name = "total_delta",
     .formula = "U_delta",
     .needs = {.uncertainty = true}},
    {.rule = PriorityRule::kEpistemic,
     .name = "epistemic",
     .formula = "E",
     .needs = {.uncertainty = true},
     .zero_for_one_member = true},
    {.rule = PriorityRule::kEpistemicDelta,
     .name = "epistemic_delta",
     .formula = "E_delta",
     .needs = {.uncertainty = true}},
    {.rule = PriorityRule::kInfoGain,
     .name = "info_gain",
     .formula = "1/2 ln(1 + E / A)",
     .needs = {.uncertainty = true},
     .divides_by_aleatoric = true,
     .zero_for_one_member = true},
    {.rule = PriorityRule::kInfoGainDelta,
     .name = "info_gain_delta",
     .formula = "1/2 ln(1 + E_delta / A): UPER",
     .needs = {.uncertainty = true},
     .divides_by_aleatoric = true},
    {.rule = PriorityRule::kRatioEa,
     .name = "ratio_ea",
     .formula = "E / A",
     .needs = {.uncertainty = true},
     .divides_by_aleatoric = true,
     .zero_for_one_member = true},
    {.rule = PriorityRule::kRatioEaDelta,
     .name = "ratio_ea_delta",
     .formula = "E_delta / A",
     .needs = {.uncertainty = true},
     .divides_by_aleatoric = true},
    {.rule = PriorityRule::kRatioEu,
     .name = "ratio_eu",
     .formula = "E / U",
     .needs = {.uncertainty = true},
     .zero_for_one_member = true},
    {.rule = PriorityRule::kRatioEuDelta,
     .name = "ratio_eu_delta",
     .formula = "E_delta / U_delta",
     .needs = {.uncertainty = true}},
    {.rule = PriorityRule::kRatioE2u,
     .name = "ratio_e2u",
     .formula = "E^2 / U",
     .needs = {.uncertainty = true},
     .zero_for_one_member = true},
    {.rule = PriorityRule::kRatioE2uDelta,
     .name = "ratio_e2u_delta",
     .formula = "E_delta^2 / U_delta",
     .needs = {.uncertainty = true}},
    {.rule = PriorityRule::kRatioE3u,
     .name = "ratio_e3u",
     .formula = "E^3 / U",
     .needs = {.uncertainty = true},
     .zero_for_one_member = true},
    {.rule = PriorityRule::kRatioE3uDelta,
     .name = "ratio_e3u_delta",
     .formula = "E_delta^3 / U_delta",
     .needs = {.uncertainty = true}},
};
static_assert([] {
  for (std::size_t i = 0; i < std::size(kPriorityRules); ++i) {
    if (static_cast<std::size_t>(kPriorityRules[i].rule) != i) return false;
  }
  return true;
}());

constexpr bool IsBuiltIn(PriorityRule rule) {
  return static_cast<std::size_t>(rule) < std::size(kPriorityRules);
}

// The functions below throw Error for a value that is not a rule.
const PriorityRuleInfo& InfoOf(PriorityRule rule);
std::string_view PriorityRuleName(PriorityRule rule);
std::optional<PriorityRule> PriorityRuleFromName(std::string_view name);
// The built-in rules and then the registered ones. Valid until the next registration.
std::span<const PriorityRule> AllPriorityRules();
// The rules as a table of Markdown.
std::string PriorityDocumentation();

// Adds a rule with a formula of the caller's. Configurations then accept its name. It runs on the
// CPU only, as the GPU cannot call info.compute. Copies the texts. Not thread-safe: register all
// rules before the first use of any rule. Throws Error(kUsage) if the name is taken or not made of
// [a-z0-9_], or if there is no formula in info.compute.
PriorityRule RegisterPriorityRule(const PriorityRuleInfo& info);

// 1/2 ln(1 + epistemic / (aleatoric + floor)): the information gained about the mean from one more
// sample, entropy of the prior minus entropy of the posterior (eq. prob_info_gain).
UPER_HOST_DEVICE inline double InfoGain(double epistemic, double aleatoric, double floor) {
  return 0.5 * std::log1p(epistemic / (aleatoric + floor));
}

// epistemic / (aleatoric + floor).
UPER_HOST_DEVICE inline double RatioEpistemicAleatoric(double epistemic, double aleatoric,
                                                       double floor) {
  return epistemic / (aleatoric + floor);
}

// epistemic^m / (epistemic + aleatoric + floor), for any m >= 1; 0 where epistemic is 0. Computed
// as h * share * h with h = epistemic^((m-1)/2) and share = 1 / (1 + (aleatoric + floor) /
// epistemic), so that nothing overflows on the way to a result that does not.
UPER_HOST_DEVICE inline double RatioEpistemicPowerTotal(double epistemic, double aleatoric,
                                                        double m, double floor) {
  if (epistemic == 0) return 0;
  const double half_power = std::pow(epistemic, 0.5 * (m - 1));
  return half_power / (1 + (aleatoric + floor) / epistemic) * half_power;
}

namespace priority_internal {

inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
inline constexpr double kLargest = std::numeric_limits<double>::max();

UPER_HOST_DEVICE inline bool Valid(double x) { return x >= 0 && x <= kLargest; }

UPER_HOST_DEVICE inline Priority Limited(double value, const PriorityLimits& limits) {
  if (!(value == value)) return {.value = kNan};
  const double positive = value + 0.0;  // adding 0 turns -0 into 0
  return {.value = limits.cap < positive ? limits.cap : positive, .capped = value > limits.cap};
}

// The priority for rules that return an input as it is.
UPER_HOST_DEVICE inline Priority FromInput(double input, const PriorityLimits& limits) {
  return Limited(Valid(input) ? input : kNan, limits);
}

enum class Ratio { kInfoGain, kEa, kEu, kE2u, kE3u };

UPER_HOST_DEVICE inline double ValueOf(Ratio ratio, double epistemic, double aleatoric,
                                       double floor) {
  switch (ratio) {
    case Ratio::kInfoGain:
      return InfoGain(epistemic, aleatoric, floor);
    case Ratio::kEa:
      return RatioEpistemicAleatoric(epistemic, aleatoric, floor);
    case Ratio::kEu:
      return RatioEpistemicPowerTotal(epistemic, aleatoric, 1, floor);
    case Ratio::kE2u:
      return RatioEpistemicPowerTotal(epistemic, aleatoric, 2, floor);
    case Ratio::kE3u:
      return RatioEpistemicPowerTotal(epistemic, aleatoric, 3, floor);
  }
  return kNan;
}

// The priority for rules of E (or E_delta) and A that have A in a denominator.
UPER_HOST_DEVICE inline Priority FromRatio(Ratio ratio, double epistemic, double aleatoric,
                                           const PriorityLimits& limits) {
  if (!Valid(epistemic) || !Valid(aleatoric)) return {.value = kNan};
  Priority priority = Limited(ValueOf(ratio, epistemic, aleatoric, limits.aleatoric_floor), limits);
  priority.floored = limits.aleatoric_floor >= aleatoric;
  return priority;
}

// The priority by a registered rule, within the limits; NaN for a value that is not a rule.
Priority ComputeRegistered(PriorityRule rule, const PriorityInputs& inputs,
                           const PriorityLimits& limits);

}  // namespace priority_internal

// The priority of one item. If a field that the rule reads is NaN, infinite or negative, the value
// is NaN, which replay memory refuses and counts. Otherwise it is in [0, limits.cap]. Allocates
// nothing.
UPER_HOST_DEVICE inline Priority ComputePriority(PriorityRule rule, const PriorityInputs& inputs,
                                                 const PriorityLimits& limits) {
  using namespace priority_internal;
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
      return FromRatio(Ratio::kInfoGain, u.epistemic, u.aleatoric, limits);
    case PriorityRule::kInfoGainDelta:
      return FromRatio(Ratio::kInfoGain, u.epistemic_delta, u.aleatoric, limits);
    case PriorityRule::kRatioEa:
      return FromRatio(Ratio::kEa, u.epistemic, u.aleatoric, limits);
    case PriorityRule::kRatioEaDelta:
      return FromRatio(Ratio::kEa, u.epistemic_delta, u.aleatoric, limits);
    case PriorityRule::kRatioEu:
      return FromRatio(Ratio::kEu, u.epistemic, u.aleatoric, limits);
    case PriorityRule::kRatioEuDelta:
      return FromRatio(Ratio::kEu, u.epistemic_delta, u.aleatoric, limits);
    case PriorityRule::kRatioE2u:
      return FromRatio(Ratio::kE2u, u.epistemic, u.aleatoric, limits);
    case PriorityRule::kRatioE2uDelta:
      return FromRatio(Ratio::kE2u, u.epistemic_delta, u.aleatoric, limits);
    case PriorityRule::kRatioE3u:
      return FromRatio(Ratio::kE3u, u.epistemic, u.aleatoric, limits);
    case PriorityRule::kRatioE3uDelta:
      return FromRatio(Ratio::kE3u, u.epistemic_delta, u.aleatoric, limits);
  }
#ifdef __CUDA_ARCH__
  return {.value = kNan};
#else
  return ComputeRegistered(rule, inputs, limits);
#endif
}

}  // namespace uper
