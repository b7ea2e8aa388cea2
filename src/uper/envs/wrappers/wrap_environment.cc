#include "uper/envs/wrappers/wrap_environment.h"

#include "uper/base/error.h"
#include "uper/base/random.h"
#include "uper/envs/wrappers/action_noise.h"
#include "uper/envs/wrappers/noisy_channels.h"
#include "uper/envs/wrappers/reward_noise.h"
#include "uper/envs/wrappers/time_limit.h"

namespace uper {

std::unique_ptr<Environment> WrapEnvironment(std::unique_ptr<Environment> environment,
                                             const EnvironmentOptions& options,
                                             const EnvironmentDefaults& own, std::uint64_t seed,
                                             std::uint64_t index) {
  WrappedSpec(environment->spec(), options);
  const auto stream = [&](const char* name) { return RandomStream(seed, name, index); };
  const double sticky = options.sticky < 0 ? own.sticky : options.sticky;
  const std::int64_t limit =
      options.time_limit_frames < 0 ? own.time_limit_frames : options.time_limit_frames;
  if (sticky > 0 && !own.applies_sticky_itself) {
    environment = std::make_unique<StickyActions>(
        std::move(environment), sticky,
        std::make_unique<StreamGameRandom>(stream("environment: sticky actions")));
  }
  if (options.random_action_probability > 0) {
    environment =
        std::make_unique<RandomActions>(std::move(environment), options.random_action_probability,
                                        stream("environment: random actions"));
  }
  if (limit > 0) {
    environment = std::make_unique<TimeLimit>(std::move(environment), limit);
  }
  if (options.reward_noise_sd > 0 && options.reward_noise_share > 0) {
    environment = std::make_unique<RewardNoise>(std::move(environment), options.reward_noise_sd,
                                                options.reward_noise_share,
                                                stream("environment: reward noise"));
  }
  if (options.noisy_channels > 0) {
    environment = std::make_unique<NoisyChannels>(std::move(environment), options.noisy_channels,
                                                  stream("environment: noisy channels"));
  }
  return environment;
}

EnvironmentSpec WrappedSpec(EnvironmentSpec spec, const EnvironmentOptions& options) {
  if (options.noisy_channels > 0 && spec.frame_stack > 1) {
    throw Error(ErrorKind::kUsage,
                "environment.noisy_channels: the frames of " + spec.name +
                    " are stacked and have one channel; leave it 0 (noise for them: "
                    "environment.reward_noise_sd, environment.random_action_probability)");
  }
  spec.channels += options.noisy_channels;
  return spec;
}

}  // namespace uper
