#pragma once

#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <string_view>

#include "uper/core/host_device.h"
#include "uper/core/uncertainty.h"

namespace uper {

// Everything a replay memory can be prioritised by. `_delta` rules use E_delta, which contains the
// distance to the target, where the others use the members' disagreement E alone.
enum class PriorityRule {
  kUniform,         // 1
  kTd,              // mean over members of |target - Q_k|
  kCounts,          // 1 / sqrt(1 + visits)
  kOracle,          // |true mean - Q|; only where the truth is known
  kTotal,           // U
  kTotalDelta,      // U_delta
  kEpistemic,       // E
  kEpistemicDelta,  // E_delta
  kInfoGain,        // 1/2 ln(1 + E / A)
  kInfoGainDelta,   // 1/2 ln(1 + E_delta / A): UPER
  kRatioEa,         // E / A
  kRatioEaDelta,
  kRatioEu,  // E / U
  kRatioEuDelta,
  kRatioE2u,  // E^2 / U
  kRatioE2uDelta,
  kRatioE3u,  // E^3 / U
  kRatioE3uDelta,
};

// Names as users write them ("info_gain_delta"), and all rules in the order above.
std::string_view PriorityRuleName(PriorityRule rule);
std::optional<PriorityRule> PriorityRuleFromName(std::string_view name);
std::span<const PriorityRule> AllPriorityRules();

// Keeps priorities finite.
struct PriorityLimits {
  double aleatoric_floor = 1e-10;  // added to A wherever A is a denominator; > 0
  double cap = 100;                // largest priority handed out; > 0 and finite
};

// What the rules look at. Only the fields that a rule names are read.
struct PriorityInputs {
  Uncertainty uncertainty;
  double td_error = 0;         // mean over members of |delta_k|
  double visits = 0;           // how often the item was used
  double oracle_distance = 0;  // |true mean - Q|
};

// A priority, and which limit shaped it (both are logged).
struct Priority {
  double value = 0;
  bool floored = false;  // the floor was at least as large as A, in a rule that divides by it
  bool capped = false;
};

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

// A rule that is the input itself.
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

// A rule of E (or E_delta) and A, which divides by A.
UPER_HOST_DEVICE inline Priority FromRatio(Ratio ratio, double epistemic, double aleatoric,
                                           const PriorityLimits& limits) {
  if (!Valid(epistemic) || !Valid(aleatoric)) return {.value = kNan};
  Priority priority = Limited(ValueOf(ratio, epistemic, aleatoric, limits.aleatoric_floor), limits);
  priority.floored = limits.aleatoric_floor >= aleatoric;
  return priority;
}

}  // namespace priority_internal

// The priority of one item. If a field that the rule reads is NaN, infinite or negative, the value
// is NaN, which the replay memory refuses and counts; otherwise it is in [0, limits.cap].
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
  return {.value = kNan};
}

}  // namespace uper
