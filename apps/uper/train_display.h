#pragma once

#include <string>

#include "uper/train/trainer.h"

namespace uper {

// Shows a training run on standard error: one line that is redrawn on a terminal, with a permanent
// line for every row of metrics.csv; only the latter when standard error is not a terminal.
class TrainDisplay {
 public:
  TrainDisplay();
  ~TrainDisplay();
  TrainDisplay(const TrainDisplay&) = delete;
  TrainDisplay& operator=(const TrainDisplay&) = delete;

  void Show(const TrainingProgress& progress);
  void Warn(const std::string& message);

 private:
  void ClearLine() const;

  const bool terminal_;
  std::string last_row_;  // what the redrawn line repeats of the newest row
};

}  // namespace uper
