#pragma once

#include "uper/engine/update_report.h"
#include "uper/metrics/metrics_window.h"
#include "uper/train/loop/phase_clock.h"

namespace uper {

// The measurements of a run: the window of the next row of metrics.csv, and the time of each phase.
class TrainingRecord final : public UpdateSink {
 public:
  // Adds the results of an update to the window.
  void Take(const UpdateReport& report) override;

  MetricsWindow window;
  PhaseClock clock;
};

}  // namespace uper
