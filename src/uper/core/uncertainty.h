#pragma once

#include <cstddef>
#include <span>

#include "uper/core/host_device.h"

namespace uper {

// Uncertainty of one state-action pair, from the quantiles theta[member, quantile] of an ensemble.
// All variances are population variances (divided by n), so the decompositions hold exactly.
// Every field except `mean` is non-negative. All are finite if the inputs are and no square
// overflows.
struct Uncertainty {
  double mean = 0;                // Q = E_{tau,psi}[theta]
  double epistemic = 0;           // E = E_tau[V_psi(theta)], disagreement of the members
  double aleatoric = 0;           // A = V_tau[E_psi(theta)], spread of the mean distribution
  double target_distance_sq = 0;  // delta_Theta^2 = (mean target - Q)^2
  double epistemic_delta = 0;     // E_delta = U_delta - A, made of non-negative terms only
  double total = 0;               // U = V_{tau,psi}[theta] = E + A
  double total_delta = 0;         // U_delta = E[(target - theta)^2] = E_delta + A
};

// The decomposition for a scalar target from the moments of theta: E_delta = delta_Theta^2 + E.
UPER_HOST_DEVICE inline Uncertainty WithTarget(double mean, double epistemic, double aleatoric,
                                               double target) {
  const double distance_sq = (target - mean) * (target - mean);
  return {.mean = mean,
          .epistemic = epistemic,
          .aleatoric = aleatoric,
          .target_distance_sq = distance_sq,
          .epistemic_delta = distance_sq + epistemic,
          .total = epistemic + aleatoric,
          .total_delta = (distance_sq + epistemic) + aleatoric};
}

// Shape of theta: row-major [members, quantiles].
struct EnsembleShape {
  std::size_t members = 1;    // K >= 1
  std::size_t quantiles = 1;  // M >= 1
};

// The paper's decomposition for a scalar target Theta
// (eq. main_uncertainty_proposed_decomposition):
//   U_delta = E_{tau,psi}[(Theta - theta_tau(psi))^2] = delta_Theta^2 + E + A,
//   E_delta = delta_Theta^2 + E.
// O(K M), allocates nothing. Instantiated for float and double; sums are double. A common offset
// costs no accuracy; equal members give E = 0 exactly, equal quantiles A = 0.
// REQUIRES: theta.size() == members * quantiles.
template <typename Real>
Uncertainty DecomposeScalarTarget(std::span<const Real> theta, EnsembleShape shape, double target);

// The Atari form (eq. atari_epi): member k's quantiles against member k's own target distribution
// T_k,tau' = reward + discount * target_theta[k, tau'],
//   U_delta = E_{tau,tau',psi}[(T_tau'(psi) - theta_tau(psi))^2].
// No pairs are formed:
//   E_delta = discount^2 mean_k V_tau'(target_theta_k) + mean_k (mean T_k - mean theta_k)^2
//             + mean_{k,tau} ((theta_k,tau - mean_k theta_k,tau) - (mean theta_k - Q))^2,
//   target_distance_sq = (mean_k T_k - Q)^2 <= E_delta.
// target_theta has the same shape as theta. O(K M), allocates nothing. Instantiated for float and
// double.
template <typename Real>
Uncertainty DecomposeTargetQuantiles(std::span<const Real> theta,
                                     std::span<const Real> target_theta, EnsembleShape shape,
                                     double reward, double discount);

}  // namespace uper
