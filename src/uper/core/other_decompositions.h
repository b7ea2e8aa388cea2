#pragma once

#include <span>

namespace uper {

// The other decompositions of the paper, for finite samples. Variances are population variances, so
// that each identity holds up to rounding.

// DEUP (eqs. deup_*): total uncertainty of an estimate Q for samples of the target Theta,
//   U(Q) = E[(Theta - Q)^2] = V[Theta] + (Q - E[Theta])^2 = aleatoric + epistemic.
struct DeupUncertainty {
  double total = 0;
  double aleatoric = 0;
  double epistemic = 0;
};
DeupUncertainty DecomposeDeup(std::span<const double> targets, double estimate);

// Quantile regression (SM, eq. uncertainty_decomposition), over quantiles theta and rewards r:
//   U = E_{tau,r}[(r - theta_tau)^2] = (mean r - Q)^2 + V[r] + V_tau[theta].
// The squared TD error is E_r[(r - Q)^2] = (mean r - Q)^2 + V[r].
struct QuantileErrorTerms {
  double true_distance_sq = 0;     // (E*)^2 = (mean r - Q)^2
  double target_variance = 0;      // V[r]
  double estimation_variance = 0;  // V_tau[theta]

  double total_uncertainty() const {
    return true_distance_sq + target_variance + estimation_variance;
  }
  double td_error_sq() const { return true_distance_sq + target_variance; }
};
QuantileErrorTerms DecomposeQuantileError(std::span<const double> theta,
                                          std::span<const double> rewards);

// Bayesian learning of a Gaussian mean: prior variance s^2, one sample of variance s_x^2.
// Posterior variance s^2 s_x^2 / (s^2 + s_x^2). REQUIRES: both > 0.
double PosteriorVariance(double prior_variance, double sample_variance);
// Differential entropy of a Gaussian, 1/2 ln(2 pi e variance).
double GaussianEntropy(double variance);

}  // namespace uper
