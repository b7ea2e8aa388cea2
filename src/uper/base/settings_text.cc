#include "uper/base/settings_text.h"

#include <algorithm>
#include <charconv>

#include "uper/base/error.h"

namespace uper {

std::optional<Number> ParseNumber(std::string_view text) {
  const bool misplaced =
      text.starts_with('_') || text.ends_with('_') || text.find("__") != std::string_view::npos;
  std::string digits(text.starts_with('+') ? text.substr(1) : text);
  std::erase(digits, '_');
  if (misplaced || digits.empty()) return std::nullopt;
  const char* const end = digits.data() + digits.size();
  std::int64_t integer = 0;
  const auto as_integer = std::from_chars(digits.data(), end, integer);
  if (as_integer.ec == std::errc() && as_integer.ptr == end) return integer;
  double number = 0;
  const auto as_number = std::from_chars(digits.data(), end, number);
  if (as_number.ec == std::errc() && as_number.ptr == end) return number;
  return std::nullopt;
}

std::pair<std::string, std::string> SplitSetting(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0) {
    throw Error(ErrorKind::kUsage, "--set takes key=value, not '" + std::string(text) + "'");
  }
  return {std::string(text.substr(0, equals)), std::string(text.substr(equals + 1))};
}

}  // namespace uper
