#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "uper/base/random.h"
#include "uper/replay/replay_buffer.h"
#include "uper/tabular/q_table.h"

namespace uper {

// The rule that chooses stored transitions for further updates.
enum class QReplay {
  kNone,      // no replay: online updates only
  kUniform,   // experience replay (ER)
  kTdError,   // p = |delta| of the item's latest replay (PER)
  kInfoGain,  // p = 1/2 ln(1 + E / A), E = 1 / sqrt(1 + C), A the learned variance (UPER)
};

// The priority of a transition that has not been replayed yet.
enum class NewItemPriority {
  kLargest,  // the largest priority seen so far, 1 at first (Schaul et al. 2016)
  kCurrent,  // computed like any other, from the online step that made the transition
};

// The visits that C counts.
enum class VisitCount { kStateAction, kState };

struct QAgentOptions {
  double epsilon = 0.95;  // probability of a uniformly random action while training
  QStepSizes steps;

  QReplay replay = QReplay::kNone;
  std::size_t replay_capacity = 10'000;  // transitions
  int steps_between_replays = 10;        // environment steps, counted across episodes
  int replay_updates = 5;                // draws after these steps, each with one update
  double priority_exponent = 0.7;        // alpha
  double uniform_mix = 1e-3;             // share of draws that ignore the priorities
  NewItemPriority new_items = NewItemPriority::kLargest;
  VisitCount visit_count = VisitCount::kStateAction;
  double aleatoric_floor = 1e-10;  // added to A in the information gain

  // Throws Error(kUsage) for values out of range.
  void Validate() const;
};

// Tabular Q-learning that learns online from every step and, between steps, from a replay memory
// ("direct" and "indirect" learning in the paper's gridworld). Replayed and online updates are the
// same, without importance weights. Not thread-safe.
class QAgent {
 public:
  // `replay_draws` is the stream of the memory's draws. Throws Error(kUsage) for bad options.
  QAgent(int states, int actions, const QAgentOptions& options, RandomStream replay_draws);

  // Epsilon-greedy, ties at random, all from `exploration`.
  int Act(int state, RandomStream& exploration) const;

  // Learns from one step of the environment, stores it, and replays when a replay is due.
  void Observe(const QTransition& transition);

  const QTable& table() const { return table_; }
  // The replay memory, null without replay.
  const ReplayBuffer* buffer() const { return buffer_ ? &*buffer_ : nullptr; }
  // Number of replay draws of each (s_tm1, a_tm1): [state, action].
  std::span<const std::int64_t> draws() const { return draws_; }

 private:
  void Store(const QTransition& transition, double td_error, ReplayBuffer& buffer);
  void Replay(ReplayBuffer& buffer);
  double PriorityOf(const QTransition& transition, double td_error) const;

  const QAgentOptions options_;
  QTable table_;
  std::optional<ReplayBuffer> buffer_;    // none without replay
  std::vector<QTransition> transitions_;  // of the buffer, by slot
  std::vector<std::int64_t> draws_;       // [state, action]
  std::int64_t steps_ = 0;                // of the environment
};

}  // namespace uper
