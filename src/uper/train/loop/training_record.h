#pragma once

#include "uper/engine/update_report.h"
#include "uper/metrics/metrics_window.h"
#include "uper/train/loop/phase_clock.h"

namespace uper {

// What a run measures of itself: the window of the next row of metrics.csv, and where time went.
class TrainingRecord final : public UpdateSink {
 public:
  // Adds what an update found to the window.
  void Take(const UpdateReport& report) override;

  MetricsWindow window;
  PhaseClock clock;
};

}  // namespace uper
