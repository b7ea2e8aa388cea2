#include "uper/core/quantile.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "uper/base/check.h"

namespace uper {
namespace {

// huber_kappa(u) and its derivative.
struct HuberTerm {
  double value;
  double slope;
};

HuberTerm Huber(double u, double kappa) {
  const double size = std::abs(u);
  if (size <= kappa) return {0.5 * u * u, u};
  const double sign = u > 0 ? 1.0 : (u < 0 ? -1.0 : u);  // u itself: 0, or NaN
  if (kappa == 0) return {size, sign};
  return {kappa * (size - 0.5 * kappa), kappa * sign};
}

template <typename Real>
void CheckShapes(std::span<const Real> theta, std::span<const Real> targets, Real kappa,
                 std::span<Real> gradient) {
  UPER_CHECK(!theta.empty() && !targets.empty(), "quantiles and targets are needed");
  UPER_CHECK(gradient.size() == theta.size(), "one derivative per quantile");
  UPER_CHECK(kappa >= 0 && std::isfinite(kappa), "kappa is finite and not negative");
}

}  // namespace

std::vector<double> QuantileMidpoints(std::size_t m) {
  std::vector<double> midpoints(m);
  for (std::size_t i = 0; i < m; ++i) midpoints[i] = QuantileMidpoint(i, m);
  return midpoints;
}

void QuantileRegressionStep(std::span<double> theta, std::span<const double> midpoints,
                            double sample, double step) {
  UPER_CHECK(theta.size() == midpoints.size(), "one midpoint per quantile");
  for (std::size_t i = 0; i < theta.size(); ++i) {
    theta[i] += step * (midpoints[i] - (sample < theta[i] ? 1.0 : 0.0));
  }
}

template <typename Real>
Real QuantileHuberPairwise(std::span<const Real> theta, std::span<const Real> targets, Real kappa,
                           std::span<Real> gradient) {
  CheckShapes(theta, targets, kappa, gradient);
  const double n = static_cast<double>(targets.size());
  double loss = 0;
  for (std::size_t i = 0; i < theta.size(); ++i) {
    const double tau = QuantileMidpoint(i, theta.size());
    double slope = 0;
    for (const Real target : targets) {
      const double u = static_cast<double>(target) - static_cast<double>(theta[i]);
      const double weight = std::abs(tau - (u < 0 ? 1.0 : 0.0));
      const HuberTerm term = Huber(u, static_cast<double>(kappa));
      loss += weight * term.value;
      slope -= weight * term.slope;
    }
    gradient[i] = static_cast<Real>(slope / n);
  }
  return static_cast<Real>(loss / n);
}

template <typename Real>
QuantileHuberSorter<Real>::QuantileHuberSorter(std::size_t max_targets)
    : targets_(max_targets),
      sorted_(max_targets),
      sums_(max_targets + 1),
      squares_(max_targets + 1) {
  UPER_CHECK(max_targets >= 1, "at least one target is needed");
}

template <typename Real>
bool QuantileHuberSorter<Real>::SortTargets(std::span<const Real> targets) {
  count_ = targets.size();
  const auto is_finite = [](Real target) { return std::isfinite(target); };
  if (!std::all_of(targets.begin(), targets.end(), is_finite)) return false;
  const auto end = std::copy(targets.begin(), targets.end(), targets_.begin());
  std::sort(targets_.begin(), end);
  origin_ = static_cast<double>(targets_[count_ / 2]);
  for (std::size_t j = 0; j < count_; ++j) {
    sorted_[j] = static_cast<double>(targets_[j]) - origin_;
    sums_[j + 1] = sums_[j] + sorted_[j];
    squares_[j + 1] = squares_[j] + sorted_[j] * sorted_[j];
  }
  return true;
}

template <typename Real>
typename QuantileHuberSorter<Real>::RangeSums QuantileHuberSorter<Real>::Sums(
    std::size_t begin, std::size_t end) const {
  return {.count = static_cast<double>(end - begin),
          .sum = sums_[end] - sums_[begin],
          .squares = squares_[end] - squares_[begin]};
}

template <typename Real>
typename QuantileHuberSorter<Real>::LossAndSlope QuantileHuberSorter<Real>::SumOverTargets(
    double theta, double tau, double kappa) const {
  const auto first = sorted_.begin();
  const auto last = first + static_cast<std::ptrdiff_t>(count_);
  // u < -kappa | -kappa <= u < 0 | 0 <= u <= kappa | kappa < u
  const auto near_low = std::lower_bound(first, last, theta - kappa);
  const auto middle = std::lower_bound(near_low, last, theta);
  const auto far_high = std::upper_bound(middle, last, theta + kappa);

  // |u| <= kappa: sum u^2 / 2 with u = y - theta.
  const auto quadratic = [&](auto begin, auto end) -> LossAndSlope {
    const RangeSums s = Sums(begin - first, end - first);
    const double squares = s.squares - 2 * theta * s.sum + s.count * theta * theta;
    return {.loss = 0.5 * std::max(squares, 0.0), .slope = s.count * theta - s.sum};
  };
  // |u| > kappa: sum scale * (|u| - kappa / 2).
  const double scale = kappa == 0 ? 1 : kappa;
  const auto linear = [&](auto begin, auto end, double sign) -> LossAndSlope {
    const RangeSums s = Sums(begin - first, end - first);
    const double distance = sign * (s.sum - s.count * theta);
    return {.loss = scale * (distance - 0.5 * kappa * s.count), .slope = -sign * scale * s.count};
  };

  const LossAndSlope far_below = linear(first, near_low, -1);
  const LossAndSlope below = quadratic(near_low, middle);
  const LossAndSlope above = quadratic(middle, far_high);
  const LossAndSlope far_above = linear(far_high, last, 1);
  return {
      .loss = (1 - tau) * (far_below.loss + below.loss) + tau * (above.loss + far_above.loss),
      .slope = (1 - tau) * (far_below.slope + below.slope) + tau * (above.slope + far_above.slope)};
}

template <typename Real>
Real QuantileHuberSorter<Real>::Loss(std::span<const Real> theta, std::span<const Real> targets,
                                     Real kappa, std::span<Real> gradient) {
  CheckShapes(theta, targets, kappa, gradient);
  UPER_CHECK(targets.size() <= targets_.size(), "more targets than the sorter was made for");
  if (!SortTargets(targets)) {
    std::fill(gradient.begin(), gradient.end(), std::numeric_limits<Real>::quiet_NaN());
    return std::numeric_limits<Real>::quiet_NaN();
  }
  const double n = static_cast<double>(count_);
  double loss = 0;
  for (std::size_t i = 0; i < theta.size(); ++i) {
    const LossAndSlope sum =
        SumOverTargets(static_cast<double>(theta[i]) - origin_, QuantileMidpoint(i, theta.size()),
                       static_cast<double>(kappa));
    loss += sum.loss;
    gradient[i] = static_cast<Real>(sum.slope / n);
  }
  return static_cast<Real>(loss / n);
}

template float QuantileHuberPairwise(std::span<const float>, std::span<const float>, float,
                                     std::span<float>);
template double QuantileHuberPairwise(std::span<const double>, std::span<const double>, double,
                                      std::span<double>);
template class QuantileHuberSorter<float>;
template class QuantileHuberSorter<double>;

}  // namespace uper
