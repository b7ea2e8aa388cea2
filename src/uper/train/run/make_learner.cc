#include "uper/train/run/make_learner.h"

#include "uper/base/check.h"
#include "uper/base/random.h"
#include "uper/nn/initialization.h"

namespace uper {
namespace {

int OutputsOf(const RunConfig& config) {
  switch (config.agent.head) {
    case HeadKind::kScalar:
      return 1;
    case HeadKind::kQuantile:
      return config.network.quantiles;
    case HeadKind::kCategorical:
      return config.network.atoms;
  }
  return 1;
}

InputSpec InputOf(const EnvironmentSpec& environment) {
  const bool pixels = environment.frame_stack > 1;
  UPER_CHECK(!pixels || environment.channels == 1, "frames to be stacked have one channel");
  return {.height = environment.height,
          .width = environment.width,
          .channels = environment.channels * environment.frame_stack,
          .type = environment.element == EnvironmentSpec::Element::kUint8 ? InputType::kUint8
                                                                          : InputType::kFloat32,
          .layout = pixels ? InputLayout::kPlanes : InputLayout::kChannelsLast,
          .scale = environment.input_scale};
}

NetworkSpec NetworkOf(const RunConfig& config, const EnvironmentSpec& environment) {
  NetworkSpec network;
  switch (config.network.torso) {
    case TorsoPreset::kNature:
      network.convolutions = NatureNetwork({}).convolutions;
      break;
    case TorsoPreset::kMinAtar:
      network.convolutions = MinatarNetwork(1, {}).convolutions;
      break;
    case TorsoPreset::kMlp:
      network.dense.assign(config.network.mlp_layers, config.network.mlp_units);
      break;
    case TorsoPreset::kAuto:
      UPER_CHECK(false, "network.torso must have been chosen");
  }
  network.input = InputOf(environment);
  network.hidden_units = config.network.hidden_units;
  network.actions = environment.actions;
  network.members = config.network.members;
  network.outputs = OutputsOf(config);
  network.separate_hidden = config.network.separate_hidden;
  network.shared_output_bias = config.network.shared_output_bias;
  return network;
}

LossSpec LossOf(const RunConfig& config) {
  const AgentConfig& agent = config.agent;
  return {.head = agent.head,
          .double_q = agent.double_q,
          .target_rule = agent.target_rule,
          .huber_kappa = agent.huber_kappa,
          .td_gradient_bound = agent.td_gradient_bound,
          .support = {.low = config.network.atoms_low,
                      .high = config.network.atoms_high,
                      .atoms = static_cast<std::size_t>(config.network.atoms)},
          .member_weighting = agent.member_weighting,
          .target_form = agent.target_form,
          .td_priority = agent.td_priority,
          .categorical_uncertainty = agent.categorical_uncertainty};
}

std::variant<AdamOptions, RmsPropOptions> OptimizerOf(const OptimizerConfig& optimizer) {
  if (optimizer.rule == OptimizerRule::kAdam) {
    return AdamOptions{.learning_rate = optimizer.learning_rate,
                       .first_moment_decay = optimizer.first_moment_decay,
                       .second_moment_decay = optimizer.second_moment_decay,
                       .epsilon = optimizer.epsilon};
  }
  return RmsPropOptions{.learning_rate = optimizer.learning_rate,
                        .decay = optimizer.rmsprop_decay,
                        .epsilon = optimizer.epsilon,
                        .epsilon_placement = optimizer.epsilon_placement};
}

}  // namespace

LearnerSpec LearnerSpecFrom(const RunConfig& config, const EnvironmentSpec& environment) {
  LearnerSpec spec{.network = NetworkOf(config, environment),
                   .loss = LossOf(config),
                   .optimizer = OptimizerOf(config.optimizer),
                   .max_global_norm = config.optimizer.max_global_norm,
                   .batch = config.replay.batch_size,
                   .precision = config.precision};
  spec.Validate();
  return spec;
}

void InitializeParameters(const NetworkConfig& config, const Learner& learner, RandomStream& stream,
                          std::span<float> parameters) {
  if (config.initialization == Initialization::kOrthogonal) {
    InitializeOrthogonal(learner.layout(), config.orthogonal_gain, stream, parameters);
  } else {
    InitializeUniform(learner.layout(), stream, parameters);
  }
}

void InitializeLearner(const RunConfig& config, Learner& learner) {
  RandomStream stream(static_cast<std::uint64_t>(config.seed), "initialisation");
  InitializeParameters(config.network, learner, stream, learner.State().online);
  learner.CommitState(0);
  learner.CopyTarget();
}

}  // namespace uper
