#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace uper {

// The evaluations of one training run, as the statistics use them.
struct RunCurve {
  struct Evaluation {
    std::int64_t frames = 0;  // of training, at the evaluation
    double mean_return = 0;   // raw
    bool cut = false;         // no episode ended: mean_return is of the part that was played
  };

  std::string folder;  // for messages
  std::string agent;
  std::string env;  // "atari/pong"
  std::int64_t seed = 0;
  std::int64_t frames = 0;        // trained so far
  std::int64_t total_frames = 0;  // configured
  bool finished = false;
  std::vector<Evaluation> evaluations;  // in order of frames; not empty
};

// "atari" of "atari/pong", and "pong".
std::string SuiteOf(const std::string& env);
std::string GameOf(const std::string& env);

}  // namespace uper
