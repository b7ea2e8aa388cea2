#pragma once

#include <cstdint>
#include <vector>

#include "uper/base/parallel.h"
#include "uper/envs/environment.h"
#include "uper/nn/learner.h"

namespace uper {

struct EvaluationOptions {
  std::int64_t frames = 0;    // stop after so many frames; 0: no limit
  std::int64_t episodes = 0;  // stop after so many episodes; 0: no limit
  double epsilon = 0.001;
  std::uint64_t seed = 1;
  std::uint64_t index = 0;  // tells evaluations of one run apart
};

struct EvaluationResult {
  std::vector<double> returns;  // raw, of the complete episodes
  double partial_return = 0;    // of the episode that the limit cut
  std::int64_t frames = 0;

  // Mean over complete episodes; the partial return if there is none.
  double mean_return() const;
};

// Plays an environment of its own with the online network; nothing is learned and nothing of the
// training changes. Stops early, with what it has, when `stop` becomes true.
EvaluationResult Evaluate(Learner& learner, Environment& environment,
                          const EvaluationOptions& options, const StopFlag& stop);

}  // namespace uper
