#pragma once

#include <cstdio>
#include <string>

#include "uper/train/loop/trainer.h"

namespace uper::cli {

// Shows the progress of a training run. On a terminal it redraws one line. Elsewhere it prints a
// line for every row of metrics.csv and for every evaluation.
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
  std::string last_row_;  // text of the newest row, for the redrawn line
};

}  // namespace uper::cli
