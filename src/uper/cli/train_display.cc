#include "uper/cli/train_display.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "uper/cli/terminal_progress.h"

namespace uper::cli {
namespace {

constexpr int kTrainBarWidth = 20;

std::string Number(const MetricsRow::Value& value) {
  return value ? fmt::format("{:.3g}", *value) : "-";
}

std::string RowText(const MetricsRow& row) {
  return fmt::format("return {} eval {} loss {} E {} A {} priority {} ess {}",
                     Number(row.train_return), Number(row.eval_return), Number(row.loss),
                     Number(row.epistemic_mean), Number(row.aleatoric_mean),
                     Number(row.priority_mean), Number(row.effective_sample_size));
}

}  // namespace

TrainDisplay::TrainDisplay(std::FILE* out) : out_(out), terminal_(isatty(fileno(out)) != 0) {}

TrainDisplay::~TrainDisplay() { ClearLine(); }

void TrainDisplay::ClearLine() const {
  if (terminal_) fmt::print(out_, "\r\033[K");
}

void TrainDisplay::Warn(const std::string& message) {
  ClearLine();
  fmt::print(out_, "uper: {}\n", message);
}

void TrainDisplay::Show(const TrainingProgress& progress) {
  const double total = static_cast<double>(progress.total_frames);
  const double share = total > 0 ? static_cast<double>(progress.frames) / total : 1;
  const double speed = progress.frames_per_second;
  const std::string left =
      speed > 0 ? Clocked((total - static_cast<double>(progress.frames)) / speed) + " left"
                : "just begun";
  if (progress.row != nullptr) {
    last_row_ = RowText(*progress.row);
    if (!terminal_) {
      fmt::print(out_, "{} frames ({:.0f} %), {:.0f} per second, {}: {}\n", progress.frames,
                 100 * share, speed, left, last_row_);
    }
  }
  if (progress.evaluating && !terminal_) {
    fmt::print(out_, "{} frames: evaluating\n", progress.frames);
  }
  if (!terminal_) return;
  const int filled = static_cast<int>(kTrainBarWidth * share);
  fmt::print(out_, "\r[{:=<{}}{:{}}] {:3.0f} % {:.0f} frames/s {} | {}\033[K", "", filled, "",
             kTrainBarWidth - filled, 100 * share, speed, progress.evaluating ? "evaluating" : left,
             last_row_);
  std::fflush(out_);
}

}  // namespace uper::cli
