#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace uper {

// One row of metrics.csv. A value that was not measured since the last row is empty.
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
  // Scripts may rely on the columns above only.
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

// A mean while values still arrive.
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

// The measurements since the last row of metrics.csv. Checkpoints contain it, so the row after a
// resume equals the row of the uninterrupted run.
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

  // Fills the columns that have a source in the window.
  void FillRow(MetricsRow& row) const;
};

// One column of metrics.csv.
struct MetricsColumn {
  using Field = std::variant<std::int64_t MetricsRow::*, MetricsRow::Value MetricsRow::*>;
  // How the value of a row comes out of the window:
  //   RunningMean: the mean of the added values, empty without any;
  //   optional: the latest value;
  //   double: the value itself, empty if no priority was written since the last row.
  // monostate: the trainer fills the field.
  using Source = std::variant<std::monostate, RunningMean MetricsWindow::*,
                              std::optional<double> MetricsWindow::*, double MetricsWindow::*>;

  std::string_view name;
  Field field;
  std::string_view doc;
  Source source = {};
  std::string_view saved_as = {};  // name of the source in checkpoints

  std::optional<double> ValueIn(const MetricsRow& row) const;
};

// All columns in the order of the file. The header, the documents, the rows and the saved window
// come from this table. Names of times end in _seconds or _per_second. All other columns are the
// same whenever the run is repeated or resumed. "Mean" is over the updates since the last row.
inline constexpr MetricsColumn kMetricsColumns[] = {
    {.name = "frames", .field = &MetricsRow::frames, .doc = "Training frames so far."},
    {.name = "updates", .field = &MetricsRow::updates, .doc = "Updates of the learner so far."},
    {.name = "episodes", .field = &MetricsRow::episodes, .doc = "Training episodes ended so far."},
    {.name = "train_return",
     .field = &MetricsRow::train_return,
     .doc = "Mean raw return of the episodes ended since the last row; empty if none.",
     .source = &MetricsWindow::train_return,
     .saved_as = "train_return"},
    {.name = "eval_return",
     .field = &MetricsRow::eval_return,
     .doc = "Mean raw return of an evaluation made since the last row; empty if none.",
     .source = &MetricsWindow::eval_return,
     .saved_as = "eval_return"},
    {.name = "loss",
     .field = &MetricsRow::loss,
     .doc = "Mean of the loss.",
     .source = &MetricsWindow::loss,
     .saved_as = "loss"},
    {.name = "grad_norm",
     .field = &MetricsRow::grad_norm,
     .doc = "Mean L2 norm of the gradient before clipping.",
     .source = &MetricsWindow::grad_norm,
     .saved_as = "grad_norm"},
    {.name = "epsilon",
     .field = &MetricsRow::epsilon,
     .doc = "Probability of a random action now."},
    {.name = "beta", .field = &MetricsRow::beta, .doc = "Exponent of the importance weights now."},
    {.name = "frames_per_second",
     .field = &MetricsRow::frames_per_second,
     .doc = "Speed since the last row."},
    {.name = "priority_mean",
     .field = &MetricsRow::priority_mean,
     .doc = "Mean of the priorities written back.",
     .source = &MetricsWindow::priority,
     .saved_as = "priority"},
    {.name = "priority_max",
     .field = &MetricsRow::priority_max,
     .doc = "Largest priority since the last row.",
     .source = &MetricsWindow::priority_max,
     .saved_as = "priority_max"},
    {.name = "epistemic_mean",
     .field = &MetricsRow::epistemic_mean,
     .doc = "Mean of E.",
     .source = &MetricsWindow::epistemic,
     .saved_as = "epistemic"},
    {.name = "aleatoric_mean",
     .field = &MetricsRow::aleatoric_mean,
     .doc = "Mean of A.",
     .source = &MetricsWindow::aleatoric,
     .saved_as = "aleatoric"},
    {.name = "target_distance_mean",
     .field = &MetricsRow::target_distance_mean,
     .doc = "Mean of the squared distance between mean target and mean prediction.",
     .source = &MetricsWindow::target_distance,
     .saved_as = "target_distance"},
    {.name = "effective_sample_size",
     .field = &MetricsRow::effective_sample_size,
     .doc = "Mean of (sum w)^2 / sum w^2 of a batch.",
     .source = &MetricsWindow::effective_sample_size,
     .saved_as = "effective_sample_size"},
    {.name = "td_error_mean",
     .field = &MetricsRow::td_error_mean,
     .doc = "Mean of |TD error|.",
     .source = &MetricsWindow::td_error,
     .saved_as = "td_error"},
    {.name = "floored_share",
     .field = &MetricsRow::floored_share,
     .doc = "Share of priorities for which the floor was at least as large as A.",
     .source = &MetricsWindow::floored,
     .saved_as = "floored"},
    {.name = "capped_share",
     .field = &MetricsRow::capped_share,
     .doc = "Share of priorities that the cap cut.",
     .source = &MetricsWindow::capped,
     .saved_as = "capped"},
    {.name = "refused_priorities",
     .field = &MetricsRow::refused_priorities,
     .doc = "Priorities since the last row that were refused because they were not finite or "
            "negative. The "
            "item keeps its old one.",
     .source = &MetricsWindow::refused_priorities,
     .saved_as = "refused_priorities"},
    {.name = "noisy_draw_share",
     .field = &MetricsRow::noisy_draw_share,
     .doc = "Share of draws that went to transitions with injected noise.",
     .source = &MetricsWindow::noisy_draws,
     .saved_as = "noisy_draws"},
    {.name = "noisy_stored_share",
     .field = &MetricsRow::noisy_stored_share,
     .doc = "Share of transitions with injected noise in the replay memory now."},
    {.name = "replay_size", .field = &MetricsRow::replay_size, .doc = "Transitions stored now."},
    {.name = "train_episode_frames",
     .field = &MetricsRow::train_episode_frames,
     .doc = "Mean length of the episodes ended since the last row.",
     .source = &MetricsWindow::train_episode_frames,
     .saved_as = "train_episode_frames"},
    {.name = "eval_episodes",
     .field = &MetricsRow::eval_episodes,
     .doc = "Episodes of the evaluation of eval_return.",
     .source = &MetricsWindow::eval_episodes,
     .saved_as = "eval_episodes"},
    {.name = "wall_seconds",
     .field = &MetricsRow::wall_seconds,
     .doc = "Time spent on the run so far."},
};

// Lines with their line end.
std::string MetricsHeader();
std::string MetricsLine(const MetricsRow& row);

// The columns as a table of Markdown, for docs/run-folder.md.
std::string MetricsDocumentation();

}  // namespace uper
