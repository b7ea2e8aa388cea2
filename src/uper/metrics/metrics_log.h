#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json_fwd.hpp>

#include "uper/metrics/append_log.h"
#include "uper/metrics/metrics_row.h"

namespace uper {

struct MetricsLogOptions {
  std::filesystem::path csv;     // metrics.csv
  std::filesystem::path events;  // events.out.tfevents.*
  WarningCallback warn;          // called at most once per minute and file
  // Seconds since 1970, for TensorBoard's axis. The CSV does not contain them.
  std::function<double()> wall_clock;
};

// Writes the metrics of a run as CSV and for TensorBoard. Rows are in the files when Append
// returns. A file that cannot be written causes a warning, never an exception. Not thread-safe.
class MetricsLog {
 public:
  // Replaces any logs by empty ones. Throws Error(kUsage) if a file cannot be created.
  explicit MetricsLog(const MetricsLogOptions& options);
  // Continues the logs from `state`. Throws Error(kCorrupt) if that is not a state.
  MetricsLog(const MetricsLogOptions& options, const nlohmann::json& state);

  void Append(const MetricsRow& row);
  // The state for a checkpoint. Call Sync() before that checkpoint is published.
  nlohmann::json SaveState() const;
  // Makes the rows durable. Returns the problem, or "". May be called from any thread, also during
  // Append.
  std::string Sync() const;

 private:
  std::function<double()> wall_clock_;
  AppendLog csv_;
  AppendLog events_;
};

}  // namespace uper
