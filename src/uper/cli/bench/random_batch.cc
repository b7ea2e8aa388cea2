#include "uper/cli/bench/random_batch.h"

#include <string>

#include "uper/base/random.h"
#include "uper/train/config/resolve_config.h"

namespace uper::cli {
namespace {

constexpr int kMinAtarChannels = 4;  // breakout's

}  // namespace

EnvironmentSpec ObservationsOf(const BenchLearnerOptions& options) {
  if (options.network == "nature") {
    return {.name = "atari/breakout",
            .actions = options.actions,
            .height = 84,
            .width = 84,
            .frame_stack = 4,
            .input_scale = 1.0F / 255};
  }
  return {.name = "minatar/breakout",
          .actions = options.actions,
          .height = 10,
          .width = 10,
          .channels = kMinAtarChannels,
          .element_max = 1};
}

RunConfig ConfigOf(const BenchLearnerOptions& options) {
  RunConfig config =
      ResolveConfig({.flags = {{"--agent", "agent.name", options.agent},
                               {"--network", "environment.name", ObservationsOf(options).name},
                               {"--batch", "replay.batch_size", std::to_string(options.batch)},
                               {"--device", "device", options.device}},
                     .settings = options.assignments});
  FillAutomaticKeys(config, 1);
  return config;
}

RandomBatch::RandomBatch(const RunConfig& config, const LearnerSpec& spec,
                         const EnvironmentSpec& observations)
    : s_tm1_(spec.batch * observations.observation_bytes() * observations.frame_stack),
      s_t_(s_tm1_.size()),
      a_tm1_(spec.batch),
      r_t_(spec.batch),
      discount_t_(spec.batch),
      weights_(spec.batch),
      masks_(spec.batch) {
  RandomStream stream(1, "bench learner");
  const auto bound = static_cast<std::uint64_t>(observations.element_max) + 1;
  for (std::byte& cell : s_tm1_) cell = static_cast<std::byte>(stream.UniformInt(bound));
  for (std::byte& cell : s_t_) cell = static_cast<std::byte>(stream.UniformInt(bound));
  for (int i = 0; i < spec.batch; ++i) {
    a_tm1_[i] = static_cast<std::int32_t>(stream.UniformInt(spec.network.actions));
    r_t_[i] = static_cast<float>(stream.Uniform());
    discount_t_[i] = stream.Bernoulli(0.02) ? 0 : static_cast<float>(config.agent.discount);
    weights_[i] = static_cast<float>(stream.Uniform());
    for (int k = 0; k < spec.network.members; ++k) {
      masks_[i] |= std::uint64_t{stream.Bernoulli(config.agent.mask_probability)} << k;
    }
  }
}

}  // namespace uper::cli
