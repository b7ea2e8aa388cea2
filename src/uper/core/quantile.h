#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace uper {

// Midpoint of quantile i of m: tau_i = (2 i + 1) / (2 m), i = 0..m-1.
inline double QuantileMidpoint(std::size_t i, std::size_t m) {
  return (static_cast<double>(i) + 0.5) / static_cast<double>(m);
}

// All midpoints of m quantiles.
std::vector<double> QuantileMidpoints(std::size_t m);

// One step of quantile regression on a sample (eq. qr_loss, no Huber part):
//   theta_i += step * (tau_i - 1(sample < theta_i)).
// The midpoints tau come from QuantileMidpoints, computed once. REQUIRES: equal sizes.
void QuantileRegressionStep(std::span<double> theta, std::span<const double> midpoints,
                            double sample, double step);

// Quantile Huber loss of one distribution against another (QR-DQN, DQN Zoo's convention):
//   loss = sum_i mean_j |tau_i - 1(u_ij < 0)| * huber_kappa(u_ij),   u_ij = target_j - theta_i,
//   huber_kappa(u) = u^2/2 if |u| <= kappa, else kappa (|u| - kappa/2): not divided by kappa.
// kappa = 0 is the plain quantile loss: |u| replaces the Huber part.
// Returns the loss and sets gradient[i] = d loss / d theta_i for fixed targets. A pair with u = 0
// adds 0 to the gradient, even for kappa = 0. Sums are double. An input that is not finite gives a
// loss that is not finite. There are two implementations of this sum, each for float and double.
// This one is the reference: it adds all pairs, O(m n). The other one sorts the targets. `targets`
// need not be sorted. REQUIRES: both non-empty, gradient.size() == theta.size(), kappa >= 0 and
// finite.
template <typename Real>
Real QuantileHuberPairwise(std::span<const Real> theta, std::span<const Real> targets, Real kappa,
                           std::span<Real> gradient);

// The sorted form, O((m + n) log n). For each theta_i binary searches find four ranges of the
// sorted targets; the sums of a range are differences of prefix sums. The relative difference from
// the pairwise form is about 1e-16 * (spread of the targets) / kappa. The object owns its working
// memory, so a training step allocates nothing. A target that is not finite makes loss and gradient
// NaN. Not thread-safe.
template <typename Real>
class QuantileHuberSorter {
 public:
  // REQUIRES: max_targets >= 1.
  explicit QuantileHuberSorter(std::size_t max_targets);

  // REQUIRES: as for QuantileHuberPairwise, and targets.size() <= max_targets.
  Real Loss(std::span<const Real> theta, std::span<const Real> targets, Real kappa,
            std::span<Real> gradient);

 private:
  // Number and sums of a range of the sorted targets, as distances from origin_.
  struct RangeSums {
    double count = 0;
    double sum = 0;
    double squares = 0;
  };
  struct LossAndSlope {
    double loss = 0;
    double slope = 0;  // d loss / d theta
  };

  // False if a target is not finite: NaN has no order.
  bool SortTargets(std::span<const Real> targets);
  RangeSums Sums(std::size_t begin, std::size_t end) const;
  // Sum over all targets of the loss of one theta, measured from origin_.
  LossAndSlope SumOverTargets(double theta, double tau, double kappa) const;

  // SortTargets fills the first count_ entries (count_ + 1 of the prefix sums).
  std::size_t count_ = 0;
  double origin_ = 0;            // the median target: keeps the prefix sums small
  std::vector<Real> targets_;    // sorted
  std::vector<double> sorted_;   // sorted targets - origin_
  std::vector<double> sums_;     // sums_[j] = sorted_[0] + ... + sorted_[j-1]
  std::vector<double> squares_;  // the same of squares
};

}  // namespace uper
