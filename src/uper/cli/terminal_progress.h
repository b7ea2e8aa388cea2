#pragma once

#include <chrono>
#include <cstddef>
#include <mutex>
#include <string>

#include "experiments/framework/figure.h"

namespace uper::cli {

// Minutes and seconds (5:07), or hours, minutes and seconds (2:05:07).
std::string Clocked(double seconds);

// Draws a progress bar with the remaining time on standard error, or prints plain lines if that is
// not a terminal. Thread-safe.
class TerminalProgress : public experiments::ProgressSink {
 public:
  explicit TerminalProgress(std::string name);
  ~TerminalProgress() override;

  void AddTasks(std::size_t tasks) override;
  void TaskDone() override;
  void Warn(const std::string& message) override;

 private:
  void Draw();

  const std::string name_;
  const bool terminal_;
  const std::chrono::steady_clock::time_point start_;
  std::mutex mutex_;
  // Guarded by mutex_.
  std::size_t tasks_ = 0;
  std::size_t done_ = 0;
  int last_percent_ = -1;
  std::chrono::steady_clock::time_point last_draw_;
};

}  // namespace uper::cli
