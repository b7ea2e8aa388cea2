#include "uper/cli/dump_step_json.h"

#include <nlohmann/json.hpp>

#include "uper/nn/layer_spec.h"
#include "uper/train/config/config_choices.h"

namespace uper::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string KindName(LayerKind kind) {
  switch (kind) {
    case LayerKind::kConvolution:
      return "convolution";
    case LayerKind::kDense:
      return "dense";
    case LayerKind::kHidden:
      return "hidden";
    case LayerKind::kHead:
      return "head";
  }
  return "";
}

Json ConvolutionSettings(const ConvolutionSpec& convolution) {
  return {{"filters", convolution.filters},
          {"kernel", convolution.kernel},
          {"stride", convolution.stride}};
}

// The layers in the order of the forward pass. `inputs` and `outputs` are numbers per sample.
Json LayerSettings(const NetworkSpec& network) {
  Json layers = Json::array();
  for (const LayerSpec& layer : MakeLayers(network)) {
    Json settings = {{"name", layer.name},
                     {"kind", KindName(layer.kind)},
                     {"inputs", layer.inputs()},
                     {"outputs", layer.outputs()},
                     {"members", layer.members}};
    if (layer.kind == LayerKind::kConvolution) {
      settings.update(ConvolutionSettings(layer.convolution));
    }
    layers.push_back(settings);
  }
  return layers;
}

Json NetworkSettings(const NetworkSpec& network, const NetworkConfig& config) {
  Json convolutions = Json::array();
  for (const ConvolutionSpec& convolution : network.convolutions) {
    convolutions.push_back(ConvolutionSettings(convolution));
  }
  const bool planes = network.input.layout == InputLayout::kPlanes;
  return {{"description",
           "observation * input.scale -> convolutions (VALID padding) -> flatten in (height, "
           "width, channel) order -> dense layers -> hidden layer -> linear head; ReLU after "
           "every layer but the head"},
          {"input",
           {{"height", network.input.height},
            {"width", network.input.width},
            {"channels", network.input.channels},
            {"layout", planes ? "channel, height, width" : "height, width, channel"},
            {"scale", network.input.scale}}},
          {"layers", LayerSettings(network)},
          {"convolutions", convolutions},
          {"dense_units", network.dense},
          {"hidden_units", config.hidden_units},
          {"separate_hidden", config.separate_hidden},
          {"shared_output_bias", config.shared_output_bias}};
}

// The next functions read the configuration, not the spec of the learner: a checker then notices a
// value that got lost between the two.

Json HeadSettings(const AgentConfig& agent, const NetworkConfig& network) {
  Json settings = {{"kind", ChoiceName(agent.head)},
                   {"double_q", agent.double_q},
                   {"target_rule", ChoiceName(agent.target_rule)},
                   {"member_weighting", ChoiceName(agent.member_weighting)},
                   {"discount", agent.discount},
                   {"mask_probability", agent.mask_probability}};
  switch (agent.head) {
    case HeadKind::kScalar:
      settings["td_gradient_bound"] = agent.td_gradient_bound;  // 0: none
      break;
    case HeadKind::kQuantile:
      settings["huber_kappa"] = agent.huber_kappa;
      break;
    case HeadKind::kCategorical:
      settings["atoms"] = {
          {"low", network.atoms_low}, {"high", network.atoms_high}, {"count", network.atoms}};
      break;
  }
  return settings;
}

Json PrioritySettings(const AgentConfig& agent) {
  return {{"rule", ChoiceName(agent.priority)},
          {"td_priority", ChoiceName(agent.td_priority)},
          {"td_priority_categorical_cap", kLargestLossPriority},
          {"target_form", ChoiceName(agent.target_form)},
          {"categorical_uncertainty", ChoiceName(agent.categorical_uncertainty)},
          {"aleatoric_floor", agent.aleatoric_floor},
          {"cap", agent.priority_cap}};
}

Json OptimizerSettings(const OptimizerConfig& optimizer) {
  Json settings = {{"rule", ChoiceName(optimizer.rule)},
                   {"learning_rate", optimizer.learning_rate},
                   {"epsilon", optimizer.epsilon},
                   {"epsilon_placement", ChoiceName(optimizer.epsilon_placement)},
                   {"moments", "zero before the first update"},
                   {"max_global_norm", optimizer.max_global_norm}};  // 0: no clipping
  if (optimizer.rule == OptimizerRule::kAdam) {
    settings["beta1"] = optimizer.first_moment_decay;
    settings["beta2"] = optimizer.second_moment_decay;
  } else {
    settings["decay"] = optimizer.rmsprop_decay;
  }
  return settings;
}

// The axes of each array.
Json Layouts(const NetworkSpec& network) {
  const std::string observation = network.input.layout == InputLayout::kPlanes
                                      ? "[batch, channel, height, width]"
                                      : "[batch, height, width, channel]";
  const std::string sample = "[batch]";
  return {
      {"several updates", "all but online, target and after have a leading axis [update]"},
      {"conv<i>/w", "[kernel row, kernel column, input channel, filter]"},
      {"conv<i>/b", "[filter]"},
      {"dense<i>/w", "[input, unit]"},
      {"dense<i>/b", "[unit]"},
      {"hidden/w", network.separate_hidden ? "[input, member, unit]" : "[input, unit]"},
      {"hidden/b", network.separate_hidden ? "[member, unit]" : "[unit]"},
      {"head/w", "[action, member, hidden unit, output]"},
      {"head/b", network.shared_output_bias ? "[1], for all outputs" : "[action, member, output]"},
      {"observation", observation},
      {"next_observation", observation},
      {"mask", "[batch, member], 1 where the member learns"},
      {"action, reward, discount, weight", sample},
      {"td_error, epistemic, aleatoric, target_distance_sq, priority",
       sample + ", from the parameters before the update"},
      {"gradient/<name>", "as the parameter, before clipping"},
      {"loss, gradient_norm", "one number; the norm is that before clipping"}};
}

// Details that the formulas leave open.
Json Definitions() {
  return {
      {"loss",
       "sum over batch and members of weight * mask * L / n; n: number of ones in the mask, at "
       "least 1 (member_weighting mean), or the batch size (sum)"},
      {"L, scalar",
       "delta^2 / 2; its derivative by Q is -clip(weight * delta, +-bound) * mask / n"},
      {"L, quantile",
       "sum over online quantiles i, mean over target quantiles j of |tau_i - 1(u < 0)| * "
       "huber(u), u = target_j - theta_i, tau_i = (2 i + 1) / (2 m), huber(u) = u^2 / 2 up to "
       "kappa, then kappa (|u| - kappa / 2); |u| where kappa is 0"},
      {"L, categorical", "cross-entropy of the projected target and the softmax of the logits"},
      {"after",
       "Adam divides a first gradient by its size: where an entry is smaller than its error, the "
       "step is the learning rate in either direction"},
      {"td_error",
       "mean over all members, masked or not, of |r + discount Q' - Q| (mean_abs) or of L, cut at "
       "td_priority_categorical_cap for categorical heads (loss)"},
      {"epistemic E", "mean over quantiles of the population variance over members"},
      {"aleatoric A", "population variance over quantiles of the mean over members"},
      {"target_distance_sq", "(mean target - mean)^2, over all members and quantiles"},
      {"E_delta, atari", "E[(T_k,j - theta_k,i)^2] over members k and quantiles i, j, minus A"},
      {"E_delta, scalar", "target_distance_sq + E"},
      {"categorical_uncertainty quantile",
       "each member as as many quantiles as it has atoms: the inverse at tau_i of the cumulative "
       "probabilities, linear between atoms, the first atom below its own"},
      {"categorical_uncertainty authors",
       "E and A with p_kj z_j in the quantiles' place, sums of them as means; E_delta scalar"},
      {"categorical_uncertainty total_variance",
       "E = V_k[Q_k], A = mean_k V[z under p_k]; E_delta scalar"}};
}

}  // namespace

std::string DumpStepSettings(const RunConfig& config, const LearnerSpec& spec, std::uint64_t seed,
                             int updates) {
  const Json settings = {{"agent", config.agent.name},
                         {"seed", seed},
                         {"updates", updates},
                         {"batch", config.replay.batch_size},
                         {"actions", spec.network.actions},
                         {"members", config.network.members},
                         {"outputs", spec.network.outputs},
                         {"network", NetworkSettings(spec.network, config.network)},
                         {"head", HeadSettings(config.agent, config.network)},
                         {"priority", PrioritySettings(config.agent)},
                         {"optimizer", OptimizerSettings(config.optimizer)},
                         {"layouts", Layouts(spec.network)},
                         {"definitions", Definitions()}};
  return settings.dump(1, ' ', /*ensure_ascii=*/true);
}

}  // namespace uper::cli
