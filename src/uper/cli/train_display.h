#pragma once

#include <cstdio>
#include <string>

#include "uper/train/loop/trainer.h"

namespace uper {

// Shows a training run: one line that is redrawn on a terminal, with a permanent line for every row
// of metrics.csv; only the latter when `out` is not a terminal.
class TrainDisplay {
 public:
  explicit TrainDisplay(std::FILE* out);
  ~TrainDisplay();
  TrainDisplay(const TrainDisplay&) = delete;
  TrainDisplay& operator=(const TrainDisplay&) = delete;

  void Show(const TrainingProgress& progress);
  void Warn(const std::string& message);

 private:
  void ClearLine() const;

  std::FILE* const out_;
  const bool terminal_;
  std::string last_row_;  // what the redrawn line repeats of the newest row
};

}  // namespace uper
