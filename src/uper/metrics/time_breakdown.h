#pragma once

#include <chrono>

namespace uper {

// How a run spent its time.
struct TimeBreakdown {
  double acting = 0;  // seconds
  double environment = 0;
  double sampling = 0;
  double learning = 0;
  double evaluating = 0;
  double saving = 0;  // the time for which saving paused training
};

// Adds the time between construction and destruction to a counter.
class Stopwatch {
 public:
  explicit Stopwatch(double& seconds) : seconds_(seconds) {}
  ~Stopwatch() {
    seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  double& seconds_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace uper
