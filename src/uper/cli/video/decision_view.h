#pragma once

#include <span>
#include <vector>

#include "uper/core/uncertainty.h"
#include "uper/nn/learner.h"

namespace uper::cli {

// An agent's values of its actions at one observation, and its uncertainty about one of them.
struct Decision {
  int action = 0;              // the action described below
  std::vector<double> q;       // [action]: mean over members
  std::vector<double> spread;  // [action]: standard deviation over members of their values
  // [member, output] for `action`: the members' quantile functions at the midpoints. For scalar
  // heads: the members' values.
  std::vector<float> quantiles;
  // The uncertainty of `action`, computed as for priorities, with Q itself as the target.
  Uncertainty uncertainty;
  double info_gain = 0;  // 1/2 ln(1 + E / (A + floor))
};

// `outputs` comes from Learner::MemberOutputs(), [action, member, output].
Decision DescribeDecision(const LearnerSpec& spec, std::span<const float> outputs, int action,
                          double aleatoric_floor);

}  // namespace uper::cli
