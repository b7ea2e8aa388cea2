#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "uper/base/random.h"
#include "uper/core/uncertainty.h"

namespace uper {

// An ensemble of quantile regressors of one scalar: the learner behind each arm of the bandit and
// behind the posterior study. Member k holds quantiles theta[k, i] at the midpoints tau_i.
// Not thread-safe.
class QuantileEnsemble {
 public:
  // All quantiles zero. REQUIRES: 1 <= members <= 64, quantiles >= 1.
  explicit QuantileEnsemble(EnsembleShape shape);

  // Gives every member its own sorted sample of U(low, high).
  void StartRandom(double low, double high, RandomStream& stream);
  // Gives every member the same evenly spaced grid, theta_i = low + (high - low) tau_i.
  void StartIdentical(double low, double high);

  // One quantile-regression step towards `sample`, for the members whose bit is set in `mask`.
  void Update(double sample, double step, std::uint64_t mask);

  // The decomposition against a scalar target.
  Uncertainty Decompose(double target) const;
  // mean_k |target - Q_k|: the TD error as a priority.
  double TdError(double target) const;
  // Q: the mean over members and quantiles.
  double Mean() const;
  // mean_k V_tau[theta_k]: the mean width of the members' distributions.
  double MeanMemberVariance() const;

  std::span<const double> theta() const { return theta_; }  // [member, quantile]
  std::span<double> member(std::size_t k) {
    return std::span(theta_).subspan(k * shape_.quantiles, shape_.quantiles);
  }

 private:
  double MemberMean(std::size_t k) const;

  const EnsembleShape shape_;
  const std::vector<double> midpoints_;  // tau_i
  std::vector<double> theta_;            // [member, quantile]
};

}  // namespace uper
