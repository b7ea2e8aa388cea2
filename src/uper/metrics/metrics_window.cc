#include "uper/metrics/metrics_window.h"

#include <nlohmann/json.hpp>

namespace uper {
namespace {

nlohmann::json OptionalJson(const std::optional<double>& value) {
  return value ? nlohmann::json(*value) : nlohmann::json(nullptr);
}

std::optional<double> OptionalFrom(const nlohmann::json& json) {
  return json.is_null() ? std::nullopt : std::optional(json.get<double>());
}

}  // namespace

void MetricsWindow::FillRow(MetricsRow& row) const {
  row.train_return = train_return.Value();
  row.train_episode_frames = train_episode_frames.Value();
  row.eval_return = eval_return;
  row.eval_episodes = eval_episodes;
  row.loss = loss.Value();
  row.grad_norm = grad_norm.Value();
  row.priority_mean = priority.Value();
  row.epistemic_mean = epistemic.Value();
  row.aleatoric_mean = aleatoric.Value();
  row.target_distance_mean = target_distance.Value();
  row.td_error_mean = td_error.Value();
  row.effective_sample_size = effective_sample_size.Value();
  row.floored_share = floored.Value();
  row.capped_share = capped.Value();
  row.noisy_draw_share = noisy_draws.Value();
  if (priority.count > 0) {
    row.priority_max = priority_max;
    row.refused_priorities = refused_priorities;
  }
}

nlohmann::json ToJson(const MetricsWindow& window) {
  nlohmann::json json;
  MetricsWindow::VisitMeans(window, [&](const char* name, const RunningMean& mean) {
    json[name] = {mean.sum, mean.count};
  });
  json["priority_max"] = window.priority_max;
  json["refused_priorities"] = window.refused_priorities;
  json["eval_return"] = OptionalJson(window.eval_return);
  json["eval_episodes"] = OptionalJson(window.eval_episodes);
  return json;
}

MetricsWindow MetricsWindowFrom(const nlohmann::json& json) {
  MetricsWindow window;
  MetricsWindow::VisitMeans(window, [&](const char* name, RunningMean& mean) {
    mean = {.sum = json.at(name).at(0), .count = json.at(name).at(1)};
  });
  window.priority_max = json.at("priority_max");
  window.refused_priorities = json.at("refused_priorities");
  window.eval_return = OptionalFrom(json.at("eval_return"));
  window.eval_episodes = OptionalFrom(json.at("eval_episodes"));
  return window;
}

}  // namespace uper
