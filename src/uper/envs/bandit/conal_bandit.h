#pragma once

#include <vector>

#include "uper/base/random.h"

namespace uper {

// The paper's conal bandit: arm a = 0..n-1 pays r = mean(a) + sigma(a) * N(0, 1) with
// sigma(a) = a * noise_slope / (n - 1) + noise_min, so that the arms' rewards form a cone.
struct ConalBanditOptions {
  int arms = 5;            // at least 2
  double mean = 2;         // of every arm, or of the last one when shifted
  double noise_min = 0.1;  // sigma of arm 0
  double noise_slope = 2;  // sigma_max of the paper: sigma of the last arm less noise_min
  double mean_spread = 0;  // mean(0) - mean(n-1), evenly divided over the arms: 1 when shifted
};

class ConalBandit {
 public:
  explicit ConalBandit(const ConalBanditOptions& options);

  int arms() const { return static_cast<int>(means_.size()); }
  double mean(int arm) const { return means_[arm]; }
  double sigma(int arm) const { return sigmas_[arm]; }

  double DrawReward(int arm, RandomStream& stream) const {
    return means_[arm] + sigmas_[arm] * stream.Normal();
  }

 private:
  std::vector<double> means_;
  std::vector<double> sigmas_;
};

}  // namespace uper
