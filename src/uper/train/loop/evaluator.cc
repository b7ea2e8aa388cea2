#include "uper/train/loop/evaluator.h"

#include <numeric>

#include "uper/base/random.h"
#include "uper/envs/observation_stack.h"
#include "uper/train/loop/policy.h"

namespace uper {

double EvaluationResult::mean_return() const {
  if (returns.empty()) return partial_return;
  return std::accumulate(returns.begin(), returns.end(), 0.0) / static_cast<double>(returns.size());
}

EvaluationResult Evaluate(Learner& learner, Environment& environment,
                          const EvaluationOptions& options, const StopFlag& stop,
                          const EvaluationWatcher& watch) {
  RandomStream exploration(options.seed, "evaluation exploration", options.index);
  ObservationStack seen(environment.spec());
  std::vector<float> q(environment.spec().actions);
  const auto choose = [&] {
    if (const auto action = RandomAction(q.size(), options.epsilon, exploration)) return *action;
    learner.ActionValues(seen.bytes(), 1, q);
    return GreedyAction(q, exploration);
  };
  EvaluationResult result;
  bool in_episode = false;
  EvaluationMoment moment{.seen = seen.bytes()};
  const auto show = [&](bool last) {
    moment.last = last;
    moment.episode = static_cast<std::int64_t>(result.returns.size());
    moment.episode_return = result.partial_return;
    if (watch) watch(moment);
  };
  const auto done = [&] {
    const auto episodes = static_cast<std::int64_t>(result.returns.size());
    return stop || (options.frames > 0 && result.frames >= options.frames) ||
           (options.episodes > 0 && episodes >= options.episodes);
  };
  while (!done()) {
    if (!in_episode) {
      environment.Reset(seen.next());
      seen.Start();
      result.partial_return = 0;
      in_episode = true;
      moment.step = 0;
    }
    moment.action = choose();
    show(/*last=*/false);
    const TimeStep step = environment.Step(moment.action, seen.next());
    seen.Push();
    ++moment.step;
    result.frames += step.frames;
    result.partial_return += step.reward;
    if (step.last()) {
      show(/*last=*/true);
      result.returns.push_back(result.partial_return);
      in_episode = false;
    }
  }
  return result;
}

}  // namespace uper
