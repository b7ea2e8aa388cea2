#include "uper/envs/options.h"

#include <cmath>
#include <string>

#include "uper/base/error.h"

namespace uper {
namespace {

constexpr int kMaxNoisyChannels = 64;

void Require(bool condition, const std::string& message) {
  if (!condition) throw Error(ErrorKind::kUsage, "environment." + message);
}

bool IsProbability(double value) { return 0 <= value && value <= 1; }  // false for NaN

}  // namespace

void EnvironmentOptions::Validate() const {
  Require(sticky == -1 || IsProbability(sticky),
          "sticky must be in [0, 1], or -1 for the environment's own");
  Require(time_limit_frames >= 0, "time_limit_frames must be at least 0 (0: no limit)");
  Require(std::isfinite(reward_noise_sd) && reward_noise_sd >= 0,
          "reward_noise_sd must be a number of at least 0");
  Require(IsProbability(reward_noise_share), "reward_noise_share must be in [0, 1]");
  Require(0 <= noisy_channels && noisy_channels <= kMaxNoisyChannels,
          "noisy_channels must be in [0, " + std::to_string(kMaxNoisyChannels) + "]");
  Require(IsProbability(random_action_probability), "random_action_probability must be in [0, 1]");
}

EnvironmentOptions NoisyMinAtarOptions() {
  return {.reward_noise_sd = 1, .reward_noise_share = 0.25, .noisy_channels = 1};
}

}  // namespace uper
