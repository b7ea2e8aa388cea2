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

// The priority of one item. If a field that the rule reads is NaN, infinite or negative, the value
// is NaN, which the replay memory refuses and counts; otherwise it is in [0, limits.cap].
Priority ComputePriority(PriorityRule rule, const PriorityInputs& inputs,
                         const PriorityLimits& limits);

}  // namespace uper
