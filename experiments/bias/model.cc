#include "experiments/bias/model.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "uper/base/check.h"
#include "uper/base/random.h"

namespace uper::experiments::bias {
namespace {

// Strictly inside (0, 1): the middle of one of 2^53 cells.
double OpenUniform(RandomStream& stream) {
  return (static_cast<double>(stream.NextUint64() >> 11) + 0.5) * 0x1p-53;
}

std::vector<double> Draw(const Density& density, std::size_t count, RandomStream stream) {
  std::vector<double> values(count);
  for (double& value : values) value = density.Quantile(OpenUniform(stream));
  return values;
}

// Sum of each form's priorities over the entries. The four sums advance together, each in the
// entries' order, so the result does not depend on how the compiler arranges the loop.
PerForm PrioritySums(const BiasEntries& entries, double bias) {
  PerForm sums{};
  for (std::size_t i = 0; i < entries.eta.size(); ++i) {
    const PerForm priorities = BiasPriorities(entries.eta[i] + bias, entries.beta[i]);
    for (std::size_t form = 0; form < kBiasForms; ++form) sums[form] += priorities[form];
  }
  return sums;
}

// From the sums of d^2 and d^4, d being N times the difference of two probabilities.
ErrorMoments FromPowerSums(double squares, double fourths, double entries) {
  const double mean = squares / entries;
  const double variance = std::max(0.0, fourths / entries - mean * mean);
  const double scale = 1 / (entries * entries);
  return {.mean = mean * scale, .sd = std::sqrt(variance) * scale};
}

}  // namespace

double Density::Mean() const {
  return family == Family::kUniform ? scale / 2 : scale * std::sqrt(2 / std::numbers::pi);
}

double Density::Variance() const {
  return family == Family::kUniform ? scale * scale / 12
                                    : scale * scale * (1 - 2 / std::numbers::pi);
}

double Density::Quantile(double probability) const {
  if (family == Family::kUniform) return scale * probability;
  // |N| <= x has probability 2 Phi(x) - 1; from the near tail, where the argument is exact.
  return -scale * NormalQuantile(0.5 * (1 - probability));
}

std::string_view Density::FamilyName() const {
  return family == Family::kUniform ? "uniform" : "half_normal";
}

std::array<BiasPanel, 8> BiasPanels(double normal_scale_3) {
  constexpr auto kUniform = Density::Family::kUniform;
  constexpr auto kHalfNormal = Density::Family::kHalfNormal;
  const Density uniform_1{kUniform, 1};
  const Density uniform_3{kUniform, 3};
  const Density normal_1{kHalfNormal, 1};
  const Density normal_3{kHalfNormal, normal_scale_3};
  return {{{'a', uniform_1, uniform_1},
           {'b', uniform_1, uniform_3},
           {'c', uniform_3, uniform_1},
           {'d', uniform_3, uniform_3},
           {'e', normal_1, normal_1},
           {'f', normal_1, normal_3},
           {'g', normal_3, normal_1},
           {'h', normal_3, normal_3}}};
}

BiasEntries DrawBiasEntries(const BiasPanel& panel, std::size_t entries, std::uint64_t seed) {
  return {.eta = Draw(panel.eta, entries, RandomStream(seed, "bias eta")),
          .beta = Draw(panel.beta, entries, RandomStream(seed, "bias beta"))};
}

PerForm PriorityEntropies(const BiasEntries& entries, double bias) {
  UPER_CHECK(bias >= 0, "a bias must not be negative");
  PerForm sums{};
  PerForm weighted_logs{};  // sum of p ln p
  for (std::size_t i = 0; i < entries.eta.size(); ++i) {
    const double epistemic = entries.eta[i] + bias;
    if (epistemic == 0) continue;  // p ln p -> 0
    const PerForm priorities = BiasPriorities(epistemic, entries.beta[i]);
    // ln(E^m / U) = m ln E - ln U: two logarithms serve all forms.
    const double log_epistemic = std::log(epistemic);
    const double log_total = std::log(epistemic + entries.beta[i]);
    const PerForm logs = {log_epistemic, log_epistemic - log_total, 2 * log_epistemic - log_total,
                          3 * log_epistemic - log_total};
    for (std::size_t form = 0; form < kBiasForms; ++form) {
      sums[form] += priorities[form];
      weighted_logs[form] += priorities[form] * logs[form];
    }
  }
  PerForm entropies;
  for (std::size_t form = 0; form < kBiasForms; ++form) {
    UPER_CHECK(sums[form] > 0, "a distribution needs a positive priority");
    entropies[form] = std::log(sums[form]) - weighted_logs[form] / sums[form];
  }
  return entropies;
}

ErrorsPerForm PriorityErrors(const BiasEntries& entries, double bias) {
  UPER_CHECK(bias >= 0, "a bias must not be negative");
  const double n = static_cast<double>(entries.eta.size());
  const PerForm sums = PrioritySums(entries, bias);
  const double true_sum = PrioritySums(entries, 0)[kVanilla];
  UPER_CHECK(true_sum > 0 && sums[kEu] > 0, "a distribution needs a positive priority");
  PerForm squares{};
  PerForm fourths{};
  for (std::size_t i = 0; i < entries.eta.size(); ++i) {
    const PerForm priorities = BiasPriorities(entries.eta[i] + bias, entries.beta[i]);
    const double truth = n / true_sum * entries.eta[i];
    for (std::size_t form = 0; form < kBiasForms; ++form) {
      const double difference = n / sums[form] * priorities[form] - truth;
      const double square = difference * difference;
      squares[form] += square;
      fourths[form] += square * square;
    }
  }
  ErrorsPerForm errors;
  for (std::size_t form = 0; form < kBiasForms; ++form) {
    errors[form] = FromPowerSums(squares[form], fourths[form], n);
  }
  return errors;
}

ErrorMoments UniformError(const BiasEntries& entries) {
  const double n = static_cast<double>(entries.eta.size());
  const double sum = std::accumulate(entries.eta.begin(), entries.eta.end(), 0.0);
  double squares = 0;
  double fourths = 0;
  for (const double eta : entries.eta) {
    const double difference = 1 - n / sum * eta;
    squares += difference * difference;
    fourths += difference * difference * difference * difference;
  }
  return FromPowerSums(squares, fourths, n);
}

}  // namespace uper::experiments::bias
