#pragma once

#include "experiments/bias/model.h"

namespace uper::experiments::bias {

// Closed forms that the simulation of the bias study must agree with. `entries` is N throughout.

// Entropy of the vanilla form for U(0, b) reducible uncertainty, with y = eta + C:
//   H = ln N + ln E[y] - E[y ln y] / E[y],
//   E[y] = C + b/2,  E[y ln y] = [y^2/2 ln y - y^2/4] from C to C + b, divided by b.
// Both are exact as N grows; the simulated value is below by O(1/N) and scatters by O(1/sqrt N).
double VanillaUniformEntropy(double b, double bias, double entries);

// The large-N values of the entropy and of the mean squared error at any bias, by numerical
// integration over the two densities (relative error below 1e-6; closed_form_test.cc):
//   H = ln N + ln E[p] - E[p ln p] / E[p],   error = N^-2 E[(p / E[p] - eta / E[eta])^2].
struct BiasPopulation {
  PerForm entropy{};
  PerForm error_mean{};
};
BiasPopulation IntegrateBias(const BiasPanel& panel, double bias, double entries);

// The first terms for large C, with x = eta (E), -beta (E/U), eta - beta (E^2/U),
// 2 eta - beta (E^3/U), because p = C^k (1 + x / C + O(C^-2)):
//   H = ln N - Var(x) / (2 C^2),
//   error = N^-2 [Var(eta) / m^2 - 2 Cov(eta, x) / (C m) + Var(x) / C^2],  m = E[eta].
BiasPopulation LargeBias(const BiasPanel& panel, double bias, double entries);

}  // namespace uper::experiments::bias
