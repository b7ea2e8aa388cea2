#include "uper/train/loop/evaluator.h"

#include <numeric>
#include <utility>

#include "uper/base/random.h"
#include "uper/envs/observation_stack.h"
#include "uper/train/loop/policy.h"

namespace uper {

double EvaluationResult::mean_return() const {
  if (returns.empty()) return partial_return;
  return std::accumulate(returns.begin(), returns.end(), 0.0) / static_cast<double>(returns.size());
}

namespace {

// An evaluation under way.
class Player {
 public:
  Player(Learner& learner, Environment& environment, const EvaluationOptions& options,
         const EvaluationWatcher& watch)
      : learner_(learner),
        environment_(environment),
        options_(options),
        watch_(watch),
        exploration_(options.seed, "evaluation exploration", options.index),
        seen_(environment.spec()),
        q_(environment.spec().actions) {}

  bool IsDone() const {
    const auto episodes = static_cast<std::int64_t>(result_.returns.size());
    return (options_.frames > 0 && result_.frames >= options_.frames) ||
           (options_.episodes > 0 && episodes >= options_.episodes);
  }

  // Begins an episode if none is under way, and plays one step.
  void Play() {
    if (!in_episode_) Begin();
    moment_.action = Choose();
    Show(/*last=*/false);
    const TimeStep step = environment_.Step(moment_.action, seen_.next());
    seen_.Push();
    ++moment_.step;
    result_.frames += step.frames;
    result_.partial_return += step.reward;
    if (!step.last()) return;
    Show(/*last=*/true);
    result_.returns.push_back(result_.partial_return);
    in_episode_ = false;
  }

  EvaluationResult result() && { return std::move(result_); }

 private:
  void Begin() {
    environment_.Reset(seen_.next());
    seen_.Start();
    result_.partial_return = 0;
    in_episode_ = true;
    moment_.step = 0;
  }
  int Choose() {
    const auto action = RandomAction(q_.size(), options_.epsilon, exploration_);
    if (action) return *action;
    learner_.ActionValues(seen_.bytes(), 1, q_);
    return GreedyAction(q_, exploration_);
  }
  void Show(bool last) {
    if (!watch_) return;
    moment_.seen = seen_.bytes();
    moment_.last = last;
    moment_.episode = static_cast<std::int64_t>(result_.returns.size());
    moment_.episode_return = result_.partial_return;
    watch_(moment_);
  }

  Learner& learner_;
  Environment& environment_;
  const EvaluationOptions& options_;
  const EvaluationWatcher& watch_;
  RandomStream exploration_;
  ObservationStack seen_;
  std::vector<float> q_;  // [action]
  EvaluationResult result_;
  EvaluationMoment moment_;
  bool in_episode_ = false;
};

}  // namespace

EvaluationResult Evaluate(Learner& learner, Environment& environment,
                          const EvaluationOptions& options, const StopFlag& stop,
                          const EvaluationWatcher& watch) {
  Player player(learner, environment, options, watch);
  while (!stop && !player.IsDone()) player.Play();
  return std::move(player).result();
}

}  // namespace uper
