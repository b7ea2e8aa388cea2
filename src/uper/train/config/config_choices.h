#pragma once

#include <array>
#include <string_view>

#include "uper/train/config/config.h"

namespace uper {

// The names of every choice in a configuration, as users write them.
template <typename Enum>
struct Choice {
  std::string_view name;
  Enum value;
};

template <typename Enum>
inline constexpr auto kChoices = nullptr;

template <>
inline constexpr auto kChoices<DeviceChoice> = std::to_array<Choice<DeviceChoice>>(
    {{"auto", DeviceChoice::kAuto}, {"cpu", DeviceChoice::kCpu}, {"cuda", DeviceChoice::kCuda}});

template <>
inline constexpr auto kChoices<Overlap> = std::to_array<Choice<Overlap>>({{"auto", Overlap::kAuto},
                                                                          {"true", Overlap::kYes},
                                                                          {"false", Overlap::kNo}});

template <>
inline constexpr auto kChoices<Precision> = std::to_array<Choice<Precision>>(
    {{"fp32", Precision::kFp32}, {"tf32", Precision::kTf32}, {"tf32x3", Precision::kTf32x3}});

template <>
inline constexpr auto kChoices<AtariProtocol> = std::to_array<Choice<AtariProtocol>>(
    {{"dqn-zoo", AtariProtocol::kDqnZoo}, {"dopamine", AtariProtocol::kDopamine}});

template <>
inline constexpr auto kChoices<TorsoPreset> =
    std::to_array<Choice<TorsoPreset>>({{"auto", TorsoPreset::kAuto},
                                        {"nature", TorsoPreset::kNature},
                                        {"minatar", TorsoPreset::kMinAtar},
                                        {"mlp", TorsoPreset::kMlp}});

template <>
inline constexpr auto kChoices<Initialization> = std::to_array<Choice<Initialization>>(
    {{"uniform", Initialization::kUniform}, {"orthogonal", Initialization::kOrthogonal}});

template <>
inline constexpr auto kChoices<HeadKind> =
    std::to_array<Choice<HeadKind>>({{"scalar", HeadKind::kScalar},
                                     {"quantile", HeadKind::kQuantile},
                                     {"categorical", HeadKind::kCategorical}});

template <>
inline constexpr auto kChoices<TargetAction> = std::to_array<Choice<TargetAction>>(
    {{"per_member", TargetAction::kPerMember}, {"ensemble", TargetAction::kEnsemble}});

template <>
inline constexpr auto kChoices<TdErrorKind> = std::to_array<Choice<TdErrorKind>>(
    {{"mean_abs", TdErrorKind::kMeanAbsolute}, {"loss", TdErrorKind::kLoss}});

template <>
inline constexpr auto kChoices<TargetForm> = std::to_array<Choice<TargetForm>>(
    {{"atari", TargetForm::kAtari}, {"scalar", TargetForm::kScalar}});

template <>
inline constexpr auto kChoices<CategoricalUncertainty> =
    std::to_array<Choice<CategoricalUncertainty>>({{"quantile", CategoricalUncertainty::kQuantiles},
                                                   {"authors", CategoricalUncertainty::kAuthors},
                                                   {"total_variance",
                                                    CategoricalUncertainty::kTotalVariance}});

template <>
inline constexpr auto kChoices<EpsilonPlace> = std::to_array<Choice<EpsilonPlace>>(
    {{"inside", EpsilonPlace::kInsideRoot}, {"outside", EpsilonPlace::kOutsideRoot}});

template <>
inline constexpr auto kChoices<MemberWeighting> = std::to_array<Choice<MemberWeighting>>(
    {{"mean", MemberWeighting::kMean}, {"sum", MemberWeighting::kSum}});

template <>
inline constexpr auto kChoices<OptimizerRule> = std::to_array<Choice<OptimizerRule>>(
    {{"adam", OptimizerRule::kAdam}, {"rmsprop", OptimizerRule::kRmsProp}});

template <>
inline constexpr auto kChoices<SelectorKind> =
    std::to_array<Choice<SelectorKind>>({{"proportional", SelectorKind::kProportional},
                                         {"rank", SelectorKind::kRank},
                                         {"uniform", SelectorKind::kUniform}});

template <>
inline constexpr auto kChoices<WeightNormalization> =
    std::to_array<Choice<WeightNormalization>>({{"none", WeightNormalization::kNone},
                                                {"batch_max", WeightNormalization::kBatchMax},
                                                {"buffer_max", WeightNormalization::kBufferMax}});

// All rules but `counts` and `oracle`: the network's agents know neither visits nor the truth.
template <>
inline constexpr auto kChoices<PriorityRule> =
    std::to_array<Choice<PriorityRule>>({{"uniform", PriorityRule::kUniform},
                                         {"td", PriorityRule::kTd},
                                         {"total", PriorityRule::kTotal},
                                         {"total_delta", PriorityRule::kTotalDelta},
                                         {"epistemic", PriorityRule::kEpistemic},
                                         {"epistemic_delta", PriorityRule::kEpistemicDelta},
                                         {"info_gain", PriorityRule::kInfoGain},
                                         {"info_gain_delta", PriorityRule::kInfoGainDelta},
                                         {"ratio_ea", PriorityRule::kRatioEa},
                                         {"ratio_ea_delta", PriorityRule::kRatioEaDelta},
                                         {"ratio_eu", PriorityRule::kRatioEu},
                                         {"ratio_eu_delta", PriorityRule::kRatioEuDelta},
                                         {"ratio_e2u", PriorityRule::kRatioE2u},
                                         {"ratio_e2u_delta", PriorityRule::kRatioE2uDelta},
                                         {"ratio_e3u", PriorityRule::kRatioE3u},
                                         {"ratio_e3u_delta", PriorityRule::kRatioE3uDelta}});

// The name of a choice; empty for a value without one.
template <typename Enum>
std::string_view ChoiceName(Enum value) {
  for (const Choice<Enum>& choice : kChoices<Enum>) {
    if (choice.value == value) return choice.name;
  }
  return {};
}

}  // namespace uper
