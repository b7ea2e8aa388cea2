#include "uper/core/uncertainty.h"

#include <algorithm>
#include <cstddef>

#include "uper/base/check.h"
#include "uper/core/moments.h"

namespace uper {
namespace {

// Quantiles and members are processed in blocks of this size, so that the sums fit on the stack.
constexpr std::size_t kBlock = 64;

// REQUIRES: 1 <= n <= kBlock. Works on distances from x[0]: exact for equal values.
RunningMoments BlockMoments(const double* x, std::size_t n) {
  double work[kBlock];
  for (std::size_t i = 0; i < n; ++i) work[i] = x[i] - x[0];
  const double mean = LaneSum(std::span<const double>(work, n)) / static_cast<double>(n);
  for (std::size_t i = 0; i < n; ++i) {
    const double deviation = work[i] - mean;
    work[i] = deviation * deviation;
  }
  return {.count = static_cast<double>(n),
          .mean = x[0] + mean,
          .squares = LaneSum(std::span<const double>(work, n))};
}

// Moments of one member's quantiles.
template <typename Real>
RunningMoments RowMoments(const Real* row, std::size_t quantiles) {
  RunningMoments moments;
  double x[kBlock];
  for (std::size_t first = 0; first < quantiles; first += kBlock) {
    const std::size_t n = std::min(kBlock, quantiles - first);
    for (std::size_t t = 0; t < n; ++t) x[t] = static_cast<double>(row[first + t]);
    moments.Merge(BlockMoments(x, n));
  }
  return moments;
}

// mean[t] = mean over members of theta[k, first + t] - theta[0, first + t], t < n. Distances
// to member 0 keep all digits under a common offset, and equal members give exactly 0. Inlining
// lets the compiler prove that `mean` does not alias theta, so that it vectorizes without a check.
template <typename Real>
[[gnu::always_inline]] inline void MemberMeans(const Real* theta, EnsembleShape shape,
                                               std::size_t first, std::size_t n, double* mean) {
  const Real* origin = theta + first;
  std::fill_n(mean, n, 0.0);
  for (std::size_t k = 1; k < shape.members; ++k) {
    const Real* row = origin + k * shape.quantiles;
    for (std::size_t t = 0; t < n; ++t) {
      mean[t] += static_cast<double>(row[t]) - static_cast<double>(origin[t]);
    }
  }
  const double members = static_cast<double>(shape.members);
  for (std::size_t t = 0; t < n; ++t) mean[t] /= members;
}

// Sum over members and over n quantiles of the squared deviation from the members' mean.
template <typename Real>
double MemberSquares(const Real* theta, EnsembleShape shape, std::size_t first, std::size_t n,
                     const double* mean) {
  const Real* origin = theta + first;
  double squares[kBlock];
  std::fill_n(squares, n, 0.0);
  for (std::size_t k = 0; k < shape.members; ++k) {
    const Real* row = origin + k * shape.quantiles;
    for (std::size_t t = 0; t < n; ++t) {
      const double deviation =
          (static_cast<double>(row[t]) - static_cast<double>(origin[t])) - mean[t];
      squares[t] += deviation * deviation;
    }
  }
  return LaneSum(std::span<const double>(squares, n));
}

// deviation[t] = theta[member, first + t] - mean over members, t < n.
template <typename Real>
void MemberDeviations(const Real* theta, EnsembleShape shape, std::size_t member, std::size_t first,
                      std::size_t n, const double* mean, double* deviation) {
  const Real* origin = theta + first;
  const Real* row = origin + member * shape.quantiles;
  for (std::size_t t = 0; t < n; ++t) {
    deviation[t] = (static_cast<double>(row[t]) - static_cast<double>(origin[t])) - mean[t];
  }
}

// The fields that do not depend on a target: mean, epistemic, aleatoric and total.
template <typename Real>
Uncertainty DecomposeEnsemble(const Real* theta, EnsembleShape shape) {
  RunningMoments distribution;  // of the members' mean quantiles, from theta[0, 0]
  double disagreement = 0;
  double mean[kBlock];
  const double origin = static_cast<double>(theta[0]);
  for (std::size_t first = 0; first < shape.quantiles; first += kBlock) {
    const std::size_t n = std::min(kBlock, shape.quantiles - first);
    MemberMeans(theta, shape, first, n, mean);
    disagreement += MemberSquares(theta, shape, first, n, mean);
    for (std::size_t t = 0; t < n; ++t) {
      mean[t] += static_cast<double>(theta[first + t]) - origin;
    }
    distribution.Merge(BlockMoments(mean, n));
  }
  Uncertainty result;
  result.mean = origin + distribution.mean;
  result.epistemic = disagreement / static_cast<double>(shape.members * shape.quantiles);
  result.aleatoric = distribution.variance();
  result.total = result.epistemic + result.aleatoric;
  return result;
}

// Sum over members and quantiles of ((theta_k,tau - mean_k theta_k,tau) - (mean theta_k - Q))^2:
// how much the members differ in the shape of their distributions. It is the sum over members of
// the variance over tau of theta_k,tau - mean_k theta_k,tau. Members are processed in blocks too,
// because the moments of each member must be kept while the loop passes the quantile blocks.
template <typename Real>
double ShapeDisagreement(const Real* theta, EnsembleShape shape) {
  double squares = 0;
  double mean[kBlock];
  double deviation[kBlock];
  for (std::size_t member = 0; member < shape.members; member += kBlock) {
    const std::size_t members = std::min(kBlock, shape.members - member);
    RunningMoments moments[kBlock];
    for (std::size_t first = 0; first < shape.quantiles; first += kBlock) {
      const std::size_t n = std::min(kBlock, shape.quantiles - first);
      MemberMeans(theta, shape, first, n, mean);
      for (std::size_t k = 0; k < members; ++k) {
        MemberDeviations(theta, shape, member + k, first, n, mean, deviation);
        moments[k].Merge(BlockMoments(deviation, n));
      }
    }
    for (std::size_t k = 0; k < members; ++k) squares += moments[k].squares;
  }
  return squares;
}

}  // namespace

template <typename Real>
Uncertainty DecomposeScalarTarget(std::span<const Real> theta, EnsembleShape shape, double target) {
  UPER_CHECK(!theta.empty() && theta.size() == shape.members * shape.quantiles,
             "theta must be [members, quantiles]");
  Uncertainty result = DecomposeEnsemble(theta.data(), shape);
  const double distance = target - result.mean;
  result.target_distance_sq = distance * distance;
  result.epistemic_delta = result.target_distance_sq + result.epistemic;
  result.total_delta = result.epistemic_delta + result.aleatoric;
  return result;
}

template <typename Real>
Uncertainty DecomposeTargetQuantiles(std::span<const Real> theta,
                                     std::span<const Real> target_theta, EnsembleShape shape,
                                     double reward, double discount) {
  UPER_CHECK(!theta.empty() && theta.size() == shape.members * shape.quantiles,
             "theta must be [members, quantiles]");
  UPER_CHECK(target_theta.size() == theta.size(), "theta and target_theta must have one shape");
  Uncertainty result = DecomposeEnsemble(theta.data(), shape);
  const double members = static_cast<double>(shape.members);
  double target_variances = 0;
  double gaps = 0;  // gap of member k: mean T_k - mean theta_k
  double gap_squares = 0;
  for (std::size_t k = 0; k < shape.members; ++k) {
    const std::size_t row = k * shape.quantiles;
    const RunningMoments next = RowMoments(target_theta.data() + row, shape.quantiles);
    const RunningMoments own = RowMoments(theta.data() + row, shape.quantiles);
    const double gap = (reward + discount * next.mean) - own.mean;
    target_variances += next.variance();
    gaps += gap;
    gap_squares += gap * gap;
  }
  const double mean_gap = gaps / members;
  result.target_distance_sq = mean_gap * mean_gap;
  result.epistemic_delta =
      discount * discount * (target_variances / members) + gap_squares / members +
      ShapeDisagreement(theta.data(), shape) / static_cast<double>(theta.size());
  result.total_delta = result.epistemic_delta + result.aleatoric;
  return result;
}

template Uncertainty DecomposeTargetQuantiles(std::span<const float>, std::span<const float>,
                                              EnsembleShape, double, double);
template Uncertainty DecomposeTargetQuantiles(std::span<const double>, std::span<const double>,
                                              EnsembleShape, double, double);
template Uncertainty DecomposeScalarTarget(std::span<const float>, EnsembleShape, double);
template Uncertainty DecomposeScalarTarget(std::span<const double>, EnsembleShape, double);

}  // namespace uper
