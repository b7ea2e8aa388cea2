#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

namespace uper {

// One row of metrics.csv. What was not measured since the last row is empty. "Mean" is over the
// updates since the last row unless said otherwise.
struct MetricsRow {
  using Value = std::optional<double>;

  std::int64_t frames = 0;
  std::int64_t updates = 0;
  std::int64_t episodes = 0;
  Value train_return;
  Value eval_return;
  Value loss;
  Value grad_norm;
  Value epsilon;
  Value beta;
  Value frames_per_second;
  Value priority_mean;
  Value priority_max;
  Value epistemic_mean;
  Value aleatoric_mean;
  Value target_distance_mean;
  Value effective_sample_size;
  // Beyond the columns that scripts may rely on.
  Value td_error_mean;
  Value floored_share;
  Value capped_share;
  Value refused_priorities;
  Value noisy_draw_share;
  Value noisy_stored_share;
  Value replay_size;
  Value train_episode_frames;
  Value eval_episodes;
  Value wall_seconds;
};

// One column: its name, its field, what it means.
struct MetricsColumn {
  std::string_view name;
  std::variant<std::int64_t MetricsRow::*, MetricsRow::Value MetricsRow::*> field;
  std::string_view doc;

  std::optional<double> ValueIn(const MetricsRow& row) const;
};

// All columns in the order of the file. Names of times end in _seconds or _per_second; all other
// columns are the same whenever the run is repeated or resumed.
std::span<const MetricsColumn> MetricsColumns();

// Lines with their line end.
std::string MetricsHeader();
std::string MetricsLine(const MetricsRow& row);

// The columns as a table of Markdown.
std::string MetricsDocumentation();

}  // namespace uper
