#pragma once

namespace uper {

// Direct estimation of the variance of the return by TD(0) (Sherstan et al. 2018, paper SM):
//   A(s,a) += step * (delta^2 + discount^2 A(s',a') - A(s,a)),
// where delta is the TD error of the mean estimate. With discount 0 this is regression on the
// squared error. Returns the new A(s,a). REQUIRES: 0 <= step <= 1, so that A stays non-negative.
inline double VarianceTdStep(double variance, double td_error, double discount,
                             double next_variance, double step) {
  return variance + step * (td_error * td_error + discount * discount * next_variance - variance);
}

}  // namespace uper
