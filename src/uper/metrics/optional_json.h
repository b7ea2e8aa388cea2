#pragma once

#include <nlohmann/json.hpp>
#include <optional>

namespace uper {

// A number that may be missing, as JSON: the number or null.
inline nlohmann::json OptionalJson(const std::optional<double>& value) {
  return value ? nlohmann::json(*value) : nlohmann::json(nullptr);
}
inline std::optional<double> OptionalFrom(const nlohmann::json& json) {
  return json.is_null() ? std::nullopt : std::optional(json.get<double>());
}

}  // namespace uper
