#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "uper/train/config/choice.h"
#include "uper/train/config/config.h"

namespace uper {

// The names of enumerations of lower layers, which do not depend on configurations.

template <>
inline constexpr auto kChoices<MemberWeighting> = std::to_array<Choice<MemberWeighting>>(
    {{"mean", MemberWeighting::kMean}, {"sum", MemberWeighting::kSum}});

template <>
inline constexpr auto kChoices<Precision> = std::to_array<Choice<Precision>>(
    {{"fp32", Precision::kFp32}, {"tf32", Precision::kTf32}, {"tf32x3", Precision::kTf32x3}});

template <>
inline constexpr auto kChoices<AtariProtocol> = std::to_array<Choice<AtariProtocol>>(
    {{"dqn-zoo", AtariProtocol::kDqnZoo}, {"dopamine", AtariProtocol::kDopamine}});

template <>
inline constexpr auto kChoices<HeadKind> =
    std::to_array<Choice<HeadKind>>({{"scalar", HeadKind::kScalar},
                                     {"quantile", HeadKind::kQuantile},
                                     {"categorical", HeadKind::kCategorical}});

template <>
inline constexpr auto kChoices<TargetRule> = std::to_array<Choice<TargetRule>>(
    {{"per_member", TargetRule::kPerMember}, {"ensemble", TargetRule::kEnsemble}});

template <>
inline constexpr auto kChoices<TdErrorKind> = std::to_array<Choice<TdErrorKind>>(
    {{"mean_abs", TdErrorKind::kMeanAbsolute}, {"loss", TdErrorKind::kLoss}});

template <>
inline constexpr auto kChoices<TargetForm> = std::to_array<Choice<TargetForm>>(
    {{"atari", TargetForm::kAtari}, {"scalar", TargetForm::kScalar}});

template <>
inline constexpr auto kChoices<CategoricalUncertainty> =
    std::to_array<Choice<CategoricalUncertainty>>(
        {{"quantile", CategoricalUncertainty::kQuantiles},
         {"authors", CategoricalUncertainty::kAuthors},
         {"total_variance", CategoricalUncertainty::kTotalVariance}});

template <>
inline constexpr auto kChoices<EpsilonPlacement> = std::to_array<Choice<EpsilonPlacement>>(
    {{"inside", EpsilonPlacement::kInsideRoot}, {"outside", EpsilonPlacement::kOutsideRoot}});

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

inline std::string_view ChoiceName(PriorityRule rule) { return PriorityRuleName(rule); }

// The choices of a key, in order.
template <typename Enum>
std::vector<Choice<Enum>> ChoicesOf() {
  return {kChoices<Enum>.begin(), kChoices<Enum>.end()};
}

// The rules that agents with a network can compute, registered ones included.
template <>
inline std::vector<Choice<PriorityRule>> ChoicesOf<PriorityRule>() {
  std::vector<Choice<PriorityRule>> choices;
  for (const PriorityRule rule : AllPriorityRules()) {
    if (InfoOf(rule).for_networks()) choices.push_back({PriorityRuleName(rule), rule});
  }
  return choices;
}

}  // namespace uper
