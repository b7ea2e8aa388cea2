#pragma once

#include <span>

namespace uper {

// Rewards and discounts of consecutive steps combined into one transition:
//   reward = r_1 + d_1 r_2 + d_1 d_2 r_3 + ...,  discount = d_1 d_2 ... d_n.
// The target is reward + discount * V(s_n). A step that must not bootstrap has d = 0, which removes
// the influence of all later steps.
struct NStepReturn {
  double reward = 0;
  double discount = 1;
};

// REQUIRES: rewards.size() == discounts.size().
NStepReturn AccumulateNStep(std::span<const double> rewards, std::span<const double> discounts);

}  // namespace uper
