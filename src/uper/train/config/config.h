#pragma once

#include <cstdint>
#include <string>

#include "uper/core/importance_weights.h"
#include "uper/core/priority.h"
#include "uper/envs/options.h"
#include "uper/nn/loss_spec.h"
#include "uper/nn/optimizer.h"
#include "uper/nn/precision.h"
#include "uper/replay/selectors/make_selector.h"
#include "uper/train/config/choice.h"

namespace uper {

// Everything that decides a training run: one plain struct per component. config_fields.cc lists
// the keys of these fields, their ranges and their documentation, which is not repeated here. The
// defaults are those of `qr-ens-uper` on Atari.

enum class DeviceChoice { kAuto, kCpu, kCuda };
template <>
inline constexpr auto kChoices<DeviceChoice> = std::to_array<Choice<DeviceChoice>>(
    {{"auto", DeviceChoice::kAuto}, {"cpu", DeviceChoice::kCpu}, {"cuda", DeviceChoice::kCuda}});

enum class TorsoPreset { kAuto, kNature, kMinAtar, kMlp };
template <>
inline constexpr auto kChoices<TorsoPreset> =
    std::to_array<Choice<TorsoPreset>>({{"auto", TorsoPreset::kAuto},
                                        {"nature", TorsoPreset::kNature},
                                        {"minatar", TorsoPreset::kMinAtar},
                                        {"mlp", TorsoPreset::kMlp}});

enum class Initialization { kUniform, kOrthogonal };
template <>
inline constexpr auto kChoices<Initialization> = std::to_array<Choice<Initialization>>(
    {{"uniform", Initialization::kUniform}, {"orthogonal", Initialization::kOrthogonal}});

struct NetworkConfig {
  TorsoPreset torso = TorsoPreset::kAuto;
  int mlp_layers = 1;
  int mlp_units = 128;
  int hidden_units = 512;
  int members = 10;
  int quantiles = 201;
  int atoms = 51;
  double atoms_low = -10;
  double atoms_high = 10;
  bool separate_hidden = false;
  bool shared_output_bias = false;
  Initialization initialization = Initialization::kUniform;
  double orthogonal_gain = 1;
};

struct AgentConfig {
  std::string name = "qr-ens-uper";
  HeadKind head = HeadKind::kQuantile;
  bool double_q = false;
  TargetRule target_rule = TargetRule::kPerMember;
  double huber_kappa = 1;
  double td_gradient_bound = 0;
  PriorityRule priority = PriorityRule::kInfoGainDelta;
  TdErrorKind td_priority = TdErrorKind::kMeanAbsolute;
  TargetForm target_form = TargetForm::kAtari;
  double aleatoric_floor = 1e-10;
  double priority_cap = 100;
  double mask_probability = 0.5;
  MemberWeighting member_weighting = MemberWeighting::kMean;
  CategoricalUncertainty categorical_uncertainty = CategoricalUncertainty::kQuantiles;
  double discount = 0.99;
  int n_steps = 1;
  double reward_clip = 1;
  std::int64_t learn_period_frames = 16;
  std::int64_t target_period_frames = 40'000;
  std::int64_t target_period_updates = 0;
};

enum class OptimizerRule { kAdam, kRmsProp };
template <>
inline constexpr auto kChoices<OptimizerRule> = std::to_array<Choice<OptimizerRule>>(
    {{"adam", OptimizerRule::kAdam}, {"rmsprop", OptimizerRule::kRmsProp}});

struct OptimizerConfig {
  OptimizerRule rule = OptimizerRule::kAdam;
  double learning_rate = 5e-5;
  double epsilon = 9.765625e-6;
  EpsilonPlacement epsilon_placement = EpsilonPlacement::kOutsideRoot;
  double first_moment_decay = 0.9;
  double second_moment_decay = 0.999;
  double rmsprop_decay = 0.95;
  double max_global_norm = 10;
};

struct ReplayConfig {
  std::int64_t capacity_transitions = 1'000'000;
  std::int64_t capacity_frames = 0;
  std::int64_t minimum_transitions = 50'000;
  int batch_size = 32;
  SelectorKind selector = SelectorKind::kProportional;
  double priority_exponent = 0.6;
  double importance_exponent_from = 0.4;
  double importance_exponent_to = 1;
  std::int64_t importance_exponent_start_transitions = 50'000;
  std::int64_t importance_exponent_end_transitions = 50'000'000;
  double uniform_mix = 1e-3;
  WeightNormalization weight_normalization = WeightNormalization::kBatchMax;
  bool stratified = false;
  double largest_priority_decay = 1;
};

struct ExplorationConfig {
  double epsilon_from = 1;
  double epsilon_to = 0.01;
  std::int64_t start_frames = 200'000;
  std::int64_t end_frames = 4'200'000;
};

struct EnvironmentConfig {
  std::string name = "minatar/breakout";
  EnvironmentOptions options;
};

enum class Overlap { kAuto, kYes, kNo };
template <>
inline constexpr auto kChoices<Overlap> = std::to_array<Choice<Overlap>>(
    {{"auto", Overlap::kAuto}, {"true", Overlap::kYes}, {"false", Overlap::kNo}});

struct RunConfig {
  std::int64_t frames = 200'000'000;
  std::int64_t seed = 1;
  int threads = 0;
  int environments = 1;
  Overlap overlap_updates = Overlap::kAuto;
  DeviceChoice device = DeviceChoice::kAuto;
  Precision precision = Precision::kFp32;
  std::int64_t checkpoint_every_frames = 1'000'000;
  std::int64_t log_every_frames = 50'000;
  std::int64_t evaluate_every_frames = 1'000'000;
  std::int64_t evaluation_frames = 500'000;
  std::int64_t evaluation_episodes = 0;
  double evaluation_epsilon = 0.001;
  EnvironmentConfig environment;
  NetworkConfig network;
  AgentConfig agent;
  OptimizerConfig optimizer;
  ReplayConfig replay;
  ExplorationConfig exploration;
};

}  // namespace uper
