#include "uper/tabular/q_agent.h"

#include <cmath>
#include <string>
#include <utility>

#include "uper/base/error.h"
#include "uper/core/priority.h"

namespace uper {
namespace {

void Require(bool condition, const std::string& message) {
  if (!condition) throw Error(ErrorKind::kUsage, message);
}

bool IsShare(double value) { return value >= 0 && value <= 1; }

ReplayBufferOptions BufferOptions(const QAgentOptions& options) {
  return {.capacity = options.replay_capacity,
          .selector = options.replay == QReplay::kUniform ? SelectorKind::kUniform
                                                          : SelectorKind::kProportional,
          .selection = {.priority_exponent = options.priority_exponent,
                        .uniform_mix = options.uniform_mix}};
}

}  // namespace

void QAgentOptions::Validate() const {
  Require(IsShare(epsilon), "epsilon must be from 0 to 1");
  Require(IsShare(steps.value) && IsShare(steps.variance), "step sizes must be from 0 to 1");
  Require(steps_between_replays >= 1, "steps_between_replays must be at least 1");
  Require(replay_updates >= 0, "replay_updates must not be negative");
  Require(aleatoric_floor > 0 && std::isfinite(aleatoric_floor),
          "aleatoric_floor must be positive");
  BufferOptions(*this).Validate();
}

QAgent::QAgent(int states, int actions, const QAgentOptions& options, RandomStream replay_draws)
    : options_(options), table_(states, actions) {
  options_.Validate();
  draws_.resize(static_cast<std::size_t>(states) * static_cast<std::size_t>(actions));
  if (options_.replay == QReplay::kNone) return;
  buffer_.emplace(BufferOptions(options_), replay_draws);
  transitions_.resize(options_.replay_capacity);
}

int QAgent::Act(int state, RandomStream& exploration) const {
  if (exploration.Bernoulli(options_.epsilon)) {
    return static_cast<int>(exploration.UniformInt(static_cast<std::uint64_t>(table_.actions())));
  }
  return table_.GreedyAction(state, exploration);
}

void QAgent::Observe(const QTransition& transition) {
  table_.CountVisit(transition.s_tm1, transition.a_tm1);
  const double td_error = table_.Update(transition, options_.steps);
  ++steps_;
  if (!buffer_) return;
  Store(transition, td_error, *buffer_);
  if (steps_ % options_.steps_between_replays == 0) Replay(*buffer_);
}

void QAgent::Store(const QTransition& transition, double td_error, ReplayBuffer& buffer) {
  const std::uint64_t id = options_.new_items == NewItemPriority::kLargest
                               ? buffer.Add()
                               : buffer.Add(PriorityOf(transition, td_error));
  transitions_[buffer.SlotOf(id)] = transition;
}

// Draws one item at a time, so that each draw uses the priority that the previous update wrote.
void QAgent::Replay(ReplayBuffer& buffer) {
  for (int update = 0; update < options_.replay_updates; ++update) {
    std::uint64_t id = 0;
    double probability = 0;
    float weight = 0;  // unused: the tabular updates are not weighted
    buffer.Sample({},
                  {.ids = {&id, 1}, .probabilities = {&probability, 1}, .weights = {&weight, 1}});
    const QTransition& transition = transitions_[buffer.SlotOf(id)];
    const double td_error = table_.Update(transition, options_.steps);
    const double priority = PriorityOf(transition, td_error);
    buffer.SetPriorities({&id, 1}, {&priority, 1});
    ++draws_[table_.Index(transition.s_tm1, transition.a_tm1)];
  }
}

// Called after the update with `td_error`, so it computes the gain of the current estimates.
double QAgent::PriorityOf(const QTransition& transition, double td_error) const {
  const auto [s, a] = std::pair(transition.s_tm1, transition.a_tm1);
  switch (options_.replay) {
    case QReplay::kNone:
    case QReplay::kUniform:
      return 1;
    case QReplay::kTdError:
      return std::abs(td_error);
    case QReplay::kInfoGain: {
      const std::int64_t visits =
          options_.visit_count == VisitCount::kState ? table_.StateVisits(s) : table_.Visits(s, a);
      const double epistemic = 1 / std::sqrt(1 + static_cast<double>(visits));
      return InfoGain(epistemic, table_.Variance(s, a), options_.aleatoric_floor);
    }
  }
  return 1;
}

}  // namespace uper
