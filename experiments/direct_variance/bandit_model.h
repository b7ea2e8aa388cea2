#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "uper/core/schedule.h"
#include "uper/core/uncertainty.h"
#include "uper/envs/bandit/conal_bandit.h"

namespace uper::experiments::direct_variance {

// The bandit's replay, with the directly learned variance as the denominator of UPER. Mean and
// disagreement come from the same quantile ensemble for all schemes; only the priority differs.
enum class DirectScheme {
  kUniform,
  kTd,            // mean over members of |reward - Q_k|
  kQuantileUper,  // 1/2 ln(1 + E_delta / A), A the spread of the quantiles
  kDirectUper,    // 1/2 ln(1 + E_delta / A), A learned by VarianceTdStep on the squared TD error
};
inline constexpr std::array kDirectSchemes = {DirectScheme::kUniform, DirectScheme::kTd,
                                              DirectScheme::kQuantileUper,
                                              DirectScheme::kDirectUper};
std::string_view DirectSchemeName(DirectScheme scheme);

// Defaults are those of the paper's bandit.
struct DirectBanditOptions {
  ConalBanditOptions bandit;
  EnsembleShape ensemble{.members = 30, .quantiles = 30};
  int iterations = 200;
  int steps_per_iteration = 1000;
  HalvingSchedule learning_rate{.initial = 0.005, .half_life = 40'000};
  HalvingSchedule variance_step{.initial = 0.005, .half_life = 40'000};
  double variance_start_high = 0.1;  // initial variances from U(0, this)
  double priority_exponent = 0.7;
};

struct DirectBanditTrace {
  std::vector<double> mse;                 // [iteration], mean over arms of (true mean - Q)^2
  std::vector<double> direct_variance;     // [arm], at the end, learned in every scheme
  std::vector<double> quantile_aleatoric;  // [arm], at the end
  std::vector<double> draw_share;          // [arm], of all steps
};

// Deterministic in its arguments. Schemes with the same seed share the initial quantiles and the
// sequence of rewards of each arm.
DirectBanditTrace SimulateDirectBandit(const DirectBanditOptions& options, DirectScheme scheme,
                                       std::uint64_t seed);

}  // namespace uper::experiments::direct_variance
