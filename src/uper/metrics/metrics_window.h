#pragma once

#include <algorithm>
#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "uper/metrics/metrics_row.h"

namespace uper {

// A mean in the making.
struct RunningMean {
  double sum = 0;
  double count = 0;

  void Add(double value) {
    sum += value;
    count += 1;
  }
  std::optional<double> Value() const {
    return count > 0 ? std::optional(sum / count) : std::nullopt;
  }
};

// What has been measured since the last row of metrics.csv. Part of a checkpoint, so that the row
// after a resume is the row of the uninterrupted run.
struct MetricsWindow {
  RunningMean train_return;
  RunningMean train_episode_frames;
  RunningMean loss;
  RunningMean grad_norm;
  RunningMean priority;
  RunningMean epistemic;
  RunningMean aleatoric;
  RunningMean target_distance;
  RunningMean td_error;
  RunningMean effective_sample_size;
  RunningMean floored;
  RunningMean capped;
  RunningMean noisy_draws;
  double priority_max = 0;
  double refused_priorities = 0;
  std::optional<double> eval_return;
  std::optional<double> eval_episodes;

  // Fills the columns that come from here.
  void FillRow(MetricsRow& row) const;

  // Calls visit(name, mean) for every mean, in order.
  template <typename Self, typename Visitor>
  static void VisitMeans(Self& self, Visitor&& visit) {
    visit("train_return", self.train_return);
    visit("train_episode_frames", self.train_episode_frames);
    visit("loss", self.loss);
    visit("grad_norm", self.grad_norm);
    visit("priority", self.priority);
    visit("epistemic", self.epistemic);
    visit("aleatoric", self.aleatoric);
    visit("target_distance", self.target_distance);
    visit("td_error", self.td_error);
    visit("effective_sample_size", self.effective_sample_size);
    visit("floored", self.floored);
    visit("capped", self.capped);
    visit("noisy_draws", self.noisy_draws);
  }
};

nlohmann::json ToJson(const MetricsWindow& window);
MetricsWindow MetricsWindowFrom(const nlohmann::json& json);

}  // namespace uper
