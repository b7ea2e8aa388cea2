#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "uper/base/threads/parallel.h"

namespace uper::experiments {

// A training run whose iterations are timed.
struct TimedTraining {
  std::string agent;
  std::string environment;
  std::string device;  // one of UsableDevices()
  int seed = 1;
  int iterations = 1;
  int iteration_frames = 1000;
  std::vector<std::pair<std::string, std::string>> settings;  // keys of the configuration
};

struct IterationTime {
  double seconds = 0;              // of the whole iteration
  double environment_seconds = 0;  // spent stepping the environment in training
};

// The devices that can train here: "cpu", and "cuda" if there is a GPU.
std::vector<std::string> UsableDevices();

// Trains with `threads` threads and returns one element per iteration. `warn` gets the messages of
// the trainer. Throws Error, for example kInterrupted after `stop`.
std::vector<IterationTime> TimeTraining(const TimedTraining& training, int threads,
                                        const StopFlag& stop,
                                        const std::function<void(const std::string&)>& warn);

}  // namespace uper::experiments
