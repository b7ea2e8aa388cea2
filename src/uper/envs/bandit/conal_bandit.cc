#include "uper/envs/bandit/conal_bandit.h"

#include "uper/base/check.h"

namespace uper {

ConalBandit::ConalBandit(const ConalBanditOptions& options) {
  UPER_CHECK(options.arms >= 2, "a cone needs two arms");
  for (int arm = 0; arm < options.arms; ++arm) {
    const double share = static_cast<double>(arm) / (options.arms - 1);  // 0 to 1
    means_.push_back(options.mean + options.mean_spread * (1 - share));
    sigmas_.push_back(options.noise_min + options.noise_slope * share);
  }
}

}  // namespace uper
