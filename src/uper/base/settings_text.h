#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace uper {

// A number as users write it: 1_000_000, +3, 1e6, 0.5. It is an integer if it has neither point nor
// exponent and fits into 64 bits. Returns nothing unless the whole text is a number.
using Number = std::variant<std::int64_t, double>;
std::optional<Number> ParseNumber(std::string_view text);

// Splits "key=value" at the first '='. Throws Error(kUsage), which names --set, if there is no '='
// or no key.
std::pair<std::string, std::string> SplitSetting(std::string_view text);

}  // namespace uper
