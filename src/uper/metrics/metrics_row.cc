#include "uper/metrics/metrics_row.h"

#include "uper/base/files/csv_writer.h"

namespace uper {
namespace {

constexpr MetricsColumn kColumns[] = {
    {"frames", &MetricsRow::frames, "Training frames so far."},
    {"updates", &MetricsRow::updates, "Learner steps so far."},
    {"episodes", &MetricsRow::episodes, "Training episodes ended so far."},
    {"train_return", &MetricsRow::train_return,
     "Mean raw return of the episodes ended since the last row; empty if none."},
    {"eval_return", &MetricsRow::eval_return,
     "Mean raw return of an evaluation made since the last row; empty if none."},
    {"loss", &MetricsRow::loss, "Mean."},
    {"grad_norm", &MetricsRow::grad_norm, "Mean L2 norm of the gradient before clipping."},
    {"epsilon", &MetricsRow::epsilon, "Probability of a random action now."},
    {"beta", &MetricsRow::beta, "Exponent of the importance weights now."},
    {"frames_per_second", &MetricsRow::frames_per_second, "Speed since the last row."},
    {"priority_mean", &MetricsRow::priority_mean, "Mean of the priorities written back."},
    {"priority_max", &MetricsRow::priority_max, "Largest since the last row."},
    {"epistemic_mean", &MetricsRow::epistemic_mean, "Mean of E."},
    {"aleatoric_mean", &MetricsRow::aleatoric_mean, "Mean of A."},
    {"target_distance_mean", &MetricsRow::target_distance_mean,
     "Mean of the squared distance between mean target and mean prediction."},
    {"effective_sample_size", &MetricsRow::effective_sample_size,
     "Mean of (sum w)^2 / sum w^2 of a batch."},
    {"td_error_mean", &MetricsRow::td_error_mean, "Mean of |TD error|."},
    {"floored_share", &MetricsRow::floored_share,
     "Share of priorities in which the floor was at least as large as A."},
    {"capped_share", &MetricsRow::capped_share, "Share of priorities that the cap cut."},
    {"refused_priorities", &MetricsRow::refused_priorities,
     "Priorities since the last row that were not finite or negative; the item kept its own."},
    {"noisy_draw_share", &MetricsRow::noisy_draw_share,
     "Share of draws that went to transitions touched by noise on purpose."},
    {"noisy_stored_share", &MetricsRow::noisy_stored_share,
     "Share of such transitions in the replay memory now."},
    {"replay_size", &MetricsRow::replay_size, "Transitions stored now."},
    {"train_episode_frames", &MetricsRow::train_episode_frames,
     "Mean length of the episodes ended since the last row."},
    {"eval_episodes", &MetricsRow::eval_episodes, "Episodes of that evaluation."},
    {"wall_seconds", &MetricsRow::wall_seconds, "Time spent on the run so far."},
};

}  // namespace

std::optional<double> MetricsColumn::ValueIn(const MetricsRow& row) const {
  if (const auto* count = std::get_if<std::int64_t MetricsRow::*>(&field)) {
    return static_cast<double>(row.**count);
  }
  return row.*std::get<MetricsRow::Value MetricsRow::*>(field);
}

std::span<const MetricsColumn> MetricsColumns() { return kColumns; }

std::string MetricsHeader() {
  std::string line;
  for (const MetricsColumn& column : kColumns) line += std::string(column.name) + ",";
  line.back() = '\n';
  return line;
}

std::string MetricsLine(const MetricsRow& row) {
  std::string line;
  for (const MetricsColumn& column : kColumns) {
    if (const auto* count = std::get_if<std::int64_t MetricsRow::*>(&column.field)) {
      line += std::to_string(row.**count);
    } else if (const auto value = column.ValueIn(row)) {
      line += NumberText(*value);
    }
    line += ',';
  }
  line.back() = '\n';
  return line;
}

std::string MetricsDocumentation() {
  std::string text = "| column | meaning |\n|---|---|\n";
  for (const MetricsColumn& column : kColumns) {
    text += "| `";
    text += column.name;
    text += "` | ";
    for (const char c : column.doc) {
      if (c == '|') text += '\\';  // a bar would end the cell
      text += c;
    }
    text += " |\n";
  }
  return text;
}

}  // namespace uper
