#pragma once

#include <array>
#include <string_view>

namespace uper {

// A value of an enumeration with its name in configurations.
template <typename Enum>
struct Choice {
  std::string_view name;
  Enum value;
};

// The choices of an enumeration, in the order of the documents. An enumeration of config.h has its
// specialization beside it; those of lower layers have theirs in config_choices.h.
template <typename Enum>
inline constexpr auto kChoices = nullptr;

// The name of a choice; empty for a value without one.
template <typename Enum>
std::string_view ChoiceName(Enum value) {
  for (const Choice<Enum>& choice : kChoices<Enum>) {
    if (choice.value == value) return choice.name;
  }
  return {};
}

}  // namespace uper
