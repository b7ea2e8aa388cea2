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
  WarningCallback warn;          // at most once a minute and file
  // Seconds since 1970, for TensorBoard's axis; never enters the CSV.
  std::function<double()> wall_clock;
};

// The metrics of a run, as CSV and for TensorBoard alike. Rows are in the files when Append
// returns; a file that cannot be written warns and never throws. Not thread-safe.
class MetricsLog {
 public:
  // Empty logs in the place of any others. Throws Error(kUsage) if a file cannot be created.
  explicit MetricsLog(const MetricsLogOptions& options);
  // As they were when `state` was taken. Throws Error(kCorrupt) if that is not a state.
  MetricsLog(const MetricsLogOptions& options, const nlohmann::json& state);

  void Append(const MetricsRow& row);
  // The state for a checkpoint. Sync() has to come before that checkpoint counts.
  nlohmann::json SaveState() const;
  // Makes the rows durable. Returns what went wrong, or "". May be called from any thread, beside
  // Append.
  std::string Sync() const;

 private:
  std::function<double()> wall_clock_;
  AppendLog csv_;
  AppendLog events_;
};

}  // namespace uper
