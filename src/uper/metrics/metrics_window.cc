#include "uper/metrics/metrics_window.h"

#include <nlohmann/json.hpp>

#include "uper/metrics/optional_json.h"

namespace uper {
namespace {

using nlohmann::json;

json Encode(double value) { return value; }
json Encode(const RunningMean& mean) { return {mean.sum, mean.count}; }
json Encode(const std::optional<double>& value) { return OptionalJson(value); }

void Decode(const json& from, double& value) { value = from; }
void Decode(const json& from, RunningMean& mean) {
  mean = {.sum = from.at(0), .count = from.at(1)};
}
void Decode(const json& from, std::optional<double>& value) { value = OptionalFrom(from); }

// Calls visit(name, member) for everything that the window saves.
template <typename Visitor>
void VisitSources(const Visitor& visit) {
  for (const MetricsColumn& column : kMetricsColumns) {
    std::visit(
        [&](auto member) {
          if constexpr (!std::is_same_v<decltype(member), std::monostate>) {
            visit(std::string(column.saved_as), member);
          }
        },
        column.source);
  }
}

}  // namespace

json ToJson(const MetricsWindow& window) {
  json saved;
  VisitSources([&](const std::string& name, auto member) { saved[name] = Encode(window.*member); });
  return saved;
}

MetricsWindow MetricsWindowFrom(const json& saved) {
  MetricsWindow window;
  VisitSources(
      [&](const std::string& name, auto member) { Decode(saved.at(name), window.*member); });
  return window;
}

}  // namespace uper
