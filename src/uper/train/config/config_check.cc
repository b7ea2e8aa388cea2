#include "uper/train/config/config_check.h"

#include <string>

#include "uper/base/error.h"
#include "uper/train/config/config_choices.h"

namespace uper {
namespace {

void Require(bool condition, const std::string& message) {
  if (!condition) throw Error(ErrorKind::kUsage, "configuration: " + message);
}

template <typename Enum>
std::string Named(const std::string& key, Enum value) {
  return key + " = \"" + std::string(ChoiceName(value)) + "\"";
}

void CheckHead(const AgentConfig& agent, const NetworkConfig& network) {
  const bool scalar = agent.head == HeadKind::kScalar;
  Require(scalar || agent.td_gradient_bound == 0,
          "agent.td_gradient_bound is for agent.head = \"scalar\"; set it to 0 and use "
          "optimizer.max_global_norm");
  Require(scalar || !network.shared_output_bias,
          "network.shared_output_bias is for agent.head = \"scalar\"; set it to false");
  Require(network.atoms_low < network.atoms_high,
          "network.atoms_low must be below network.atoms_high");
}

void CheckPriority(const RunConfig& config) {
  const AgentConfig& agent = config.agent;
  const PriorityRuleInfo& rule = InfoOf(agent.priority);
  const std::string priority = Named("agent.priority", agent.priority);
  Require(IsBuiltIn(agent.priority) || config.device != DeviceChoice::kCuda,
          priority +
              " was registered by this program and runs on the CPU only; set device to "
              "\"cpu\"");
  Require(IsBuiltIn(agent.priority) || config.precision == Precision::kFp32,
          priority +
              " was registered by this program and runs on the CPU only; set precision to "
              "\"fp32\"");
  const bool uniform_rule = agent.priority == PriorityRule::kUniform;
  const bool uniform_selector = config.replay.selector == SelectorKind::kUniform;
  Require(uniform_rule == uniform_selector,
          priority + " and " + Named("replay.selector", config.replay.selector) +
              " contradict each other; set both to \"uniform\", or use the selector "
              "\"proportional\" with another priority");
  Require(config.network.members > 1 || !rule.zero_for_one_member,
          priority + " is 0 for a single member; raise network.members or use a _delta rule");
  Require(agent.head != HeadKind::kScalar || !rule.divides_by_aleatoric,
          priority +
              " needs a distribution of returns; use agent.head = \"quantile\" or "
              "\"categorical\"");
  Require(agent.td_priority != TdErrorKind::kLoss || agent.head != HeadKind::kScalar,
          "agent.td_priority = \"loss\" needs agent.head = \"quantile\" or \"categorical\"; use "
          "\"mean_abs\"");
  Require(config.network.members > 1 || agent.mask_probability == 1,
          "agent.mask_probability below 1 needs an ensemble: raise network.members or set it to 1");
}

void CheckOptimizer(const OptimizerConfig& optimizer) {
  Require(optimizer.rule != OptimizerRule::kAdam ||
              optimizer.epsilon_placement == EpsilonPlacement::kOutsideRoot,
          "optimizer.rule = \"adam\" has its epsilon outside the root; set "
          "optimizer.epsilon_placement to \"outside\"");
}

void CheckReplay(const ReplayConfig& replay) {
  Require(replay.minimum_transitions <= replay.capacity_transitions,
          "replay.minimum_transitions (" + std::to_string(replay.minimum_transitions) +
              ") is above replay.capacity_transitions (" +
              std::to_string(replay.capacity_transitions) +
              "): learning would never start; lower the first or raise the second");
  Require(replay.importance_exponent_end_transitions == 0 ||
              replay.importance_exponent_start_transitions <=
                  replay.importance_exponent_end_transitions,
          "replay.importance_exponent_start_transitions must not be above "
          "replay.importance_exponent_end_transitions");
}

void CheckPeriods(const RunConfig& config) {
  const AgentConfig& agent = config.agent;
  Require((agent.target_period_frames > 0) != (agent.target_period_updates > 0),
          "set exactly one of agent.target_period_frames and agent.target_period_updates, the "
          "other to 0");
  Require(config.exploration.start_frames <= config.exploration.end_frames,
          "exploration.start_frames must not be above exploration.end_frames");
  Require(config.evaluate_every_frames == 0 || config.evaluation_frames > 0 ||
              config.evaluation_episodes > 0,
          "an evaluation needs an end: set evaluation_frames or evaluation_episodes, or "
          "evaluate_every_frames to 0");
}

}  // namespace

void CheckConfig(const RunConfig& config) {
  Require(config.precision == Precision::kFp32 || config.device != DeviceChoice::kCpu,
          Named("precision", config.precision) +
              " needs a GPU; set it to \"fp32\" or device to \"cuda\"");
  Require(config.environments <= config.replay.batch_size,
          "environments (" + std::to_string(config.environments) +
              ") is above replay.batch_size (" + std::to_string(config.replay.batch_size) +
              "): lower the first or raise the second");
  config.environment.options.Validate();
  CheckHead(config.agent, config.network);
  CheckPriority(config);
  CheckOptimizer(config.optimizer);
  CheckReplay(config.replay);
  CheckPeriods(config);
}

}  // namespace uper
