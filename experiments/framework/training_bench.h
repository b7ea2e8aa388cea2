#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace uper::experiments {

// A training run whose iterations are to be timed.
struct TimedTraining {
  std::string agent;
  std::string environment;
  std::string device;  // one of TrainingBench::devices
  int seed = 1;
  int iterations = 1;
  int iteration_frames = 1000;
  std::vector<std::pair<std::string, std::string>> settings;  // keys of the configuration
};

struct IterationTime {
  double seconds = 0;              // all of it
  double environment_seconds = 0;  // stepping the environment in training
};

// Training as a figure may use it. The program provides it: only there are learners and
// environments put together, and this layer knows neither.
struct TrainingBench {
  std::vector<std::string> devices;  // that work here: "cpu", "cuda"
  // One element an iteration. Throws Error, kInterrupted among others.
  std::function<std::vector<IterationTime>(const TimedTraining&)> time;
};

}  // namespace uper::experiments
