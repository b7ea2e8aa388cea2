#pragma once

#include <span>
#include <vector>

#include "uper/core/uncertainty.h"
#include "uper/nn/learner.h"

namespace uper {

// What an agent thinks of its actions at one observation, and how sure it is of one of them.
struct Decision {
  int action = 0;              // the one looked at
  std::vector<double> q;       // [action]: mean over members
  std::vector<double> spread;  // [action]: standard deviation over members of their values
  // Of `action`: [member, output], the members' quantile functions at the midpoints; of scalar
  // heads their values.
  std::vector<float> quantiles;
  // Of `action`, as the learner computes it for priorities, against Q itself as the target.
  Uncertainty uncertainty;
  double info_gain = 0;  // 1/2 ln(1 + E / (A + floor))
};

// From what Learner::MemberOutputs() gave, [action, member, output].
Decision DescribeDecision(const LearnerSpec& spec, std::span<const float> outputs, int action,
                          double aleatoric_floor);

}  // namespace uper
