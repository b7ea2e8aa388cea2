#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "uper/base/threads/parallel.h"
#include "uper/envs/environment.h"
#include "uper/nn/learner.h"

namespace uper {

struct EvaluationOptions {
  std::int64_t frames = 0;    // stop after so many frames; 0: no limit
  std::int64_t episodes = 0;  // stop after so many episodes; 0: no limit
  double epsilon = 0.001;
  std::uint64_t seed = 1;
  std::uint64_t index = 0;  // distinguishes evaluations of one run
};

struct EvaluationResult {
  std::vector<double> returns;  // raw, of the complete episodes
  double partial_return = 0;    // of the episode that the limit cut
  std::int64_t frames = 0;

  // Mean over complete episodes; the partial return if there is none.
  double mean_return() const;
};

// A moment of an evaluation, between the choice of an action and its step. At the end of an episode
// there is one more, with the final observation and the last action.
struct EvaluationMoment {
  std::span<const std::byte> seen;  // the agent's view: [stack, observation]
  int action = 0;
  bool last = false;          // the episode is over
  std::int64_t episode = 0;   // from 0
  std::int64_t step = 0;      // of the episode, from 0
  double episode_return = 0;  // so far, raw
};
using EvaluationWatcher = std::function<void(const EvaluationMoment&)>;

// Plays an environment of its own with the online network. It learns nothing and does not change
// the training. When `stop` becomes true it stops early and returns the results so far. `watch`, if
// given, is called at each moment. It may read learner and environment but must not change them.
EvaluationResult Evaluate(Learner& learner, Environment& environment,
                          const EvaluationOptions& options, const StopFlag& stop,
                          const EvaluationWatcher& watch = nullptr);

}  // namespace uper
