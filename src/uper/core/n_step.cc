#include "uper/core/n_step.h"

#include <cstddef>

#include "uper/base/check.h"

namespace uper {

NStepReturn AccumulateNStep(std::span<const double> rewards, std::span<const double> discounts) {
  UPER_CHECK(rewards.size() == discounts.size(), "one discount per reward");
  NStepReturn result;
  // Stops at a zero discount: a later infinite reward would give 0 * inf = NaN.
  for (std::size_t i = 0; i < rewards.size() && result.discount != 0; ++i) {
    result.reward += result.discount * rewards[i];
    result.discount *= discounts[i];
  }
  return result;
}

}  // namespace uper
