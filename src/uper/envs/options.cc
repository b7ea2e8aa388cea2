#include "uper/envs/options.h"

#include <cmath>
#include <string>

#include "uper/base/error.h"

namespace uper {
namespace {

constexpr int kMaxNoisyChannels = 64;
constexpr int kMinFrameSize = 16;
constexpr int kMaxFrameSize = 160;  // the width of the screen
constexpr int kMaxNoopFrames = 10'000;

void Require(bool condition, const std::string& message) {
  if (!condition) throw Error(ErrorKind::kUsage, "environment." + message);
}

bool IsProbability(double value) { return 0 <= value && value <= 1; }  // false for NaN

}  // namespace

void EnvironmentOptions::Validate() const {
  Require(sticky == -1 || IsProbability(sticky),
          "sticky must be in [0, 1], or -1 for the environment's own");
  Require(time_limit_frames >= -1,
          "time_limit_frames must be at least 0 (0: no limit), or -1 for the environment's own");
  Require(mode >= -1, "mode must be at least 0, or -1 for the game's default");
  Require(difficulty >= -1, "difficulty must be at least 0, or -1 for the game's default");
  Require(kMinFrameSize <= frame_size && frame_size <= kMaxFrameSize,
          "frame_size must be in [" + std::to_string(kMinFrameSize) + ", " +
              std::to_string(kMaxFrameSize) + "]");
  Require(-1 <= noop_max_frames && noop_max_frames <= kMaxNoopFrames,
          "noop_max_frames must be in [0, " + std::to_string(kMaxNoopFrames) +
              "], or -1 for the protocol's");
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
