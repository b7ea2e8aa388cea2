#pragma once

#include <nlohmann/json_fwd.hpp>

#include "uper/metrics/metrics_row.h"

namespace uper {

// The window in a checkpoint: {saved_as: value}, a mean as [sum, count], an empty value as null.
nlohmann::json ToJson(const MetricsWindow& window);
// Throws an exception of nlohmann::json for another document.
MetricsWindow MetricsWindowFrom(const nlohmann::json& json);

}  // namespace uper
