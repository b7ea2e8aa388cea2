#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "uper/base/check.h"
#include "uper/core/n_step.h"
#include "uper/replay/transition.h"

namespace uper {

// What an environment said about one step.
struct StepOutcome {
  double reward = 0;
  double discount = 1;      // 0 where the agent must not bootstrap (also in mid-episode: life loss)
  bool terminated = false;  // the episode is over; its discount counts as 0
  bool truncated = false;   // the episode was cut; the final observation bootstraps
};

// Folds the steps of *one* environment into n-step transitions; one accumulator for each
// environment, so steps of different ones never mix. A transition is emitted once n steps exist; at
// the end of an episode the shorter tails follow, all ending in the final observation, so every
// step starts exactly one transition. O(n) a step. Not thread-safe.
template <typename Observation>
class NStepAccumulator {
 public:
  struct State {
    std::vector<Observation> observations;  // s of each pending step, and the current one
    std::vector<std::int32_t> actions;
    std::vector<double> rewards;
    std::vector<double> discounts;
  };

  // REQUIRES: n >= 1.
  explicit NStepAccumulator(std::size_t n) : n_(n) { UPER_CHECK(n >= 1, "at least one step"); }

  // The first observation of an episode. An unfinished episode before it is dropped with its
  // pending steps: end it with `truncated` to keep them.
  void Start(Observation s_0) {
    pending_ = {};
    pending_.observations.push_back(std::move(s_0));
  }

  // The step that took `action` in the current observation and led to s_t. Returns the transitions
  // that are now complete, oldest first, valid until the next call. REQUIRES: Start() was called
  // since the last end of an episode.
  std::span<const Transition<Observation>> Step(std::int32_t action, const StepOutcome& outcome,
                                                Observation s_t) {
    UPER_CHECK(!pending_.observations.empty(), "an episode must be started first");
    emitted_.clear();
    pending_.actions.push_back(action);
    pending_.rewards.push_back(outcome.reward);
    pending_.discounts.push_back(outcome.terminated ? 0.0 : outcome.discount);
    const bool last = outcome.terminated || outcome.truncated;
    if (last) {
      for (std::size_t i = 0; i < pending_.actions.size(); ++i) Emit(i, s_t);
      pending_ = {};
      return emitted_;
    }
    if (pending_.actions.size() == n_) {
      Emit(0, s_t);
      DropOldest();
    }
    pending_.observations.push_back(std::move(s_t));
    return emitted_;
  }

  std::size_t pending_steps() const { return pending_.actions.size(); }

  State GetState() const { return pending_; }
  // Throws Error(kCorrupt) and changes nothing if the state does not fit.
  void SetState(State state) {
    if (!Fits(state)) throw Error(ErrorKind::kCorrupt, "pending steps do not fit");
    pending_ = std::move(state);
    emitted_.clear();
  }
  void CheckValid() const { UPER_CHECK(Fits(pending_), "pending steps are inconsistent"); }

 private:
  bool Fits(const State& state) const {
    const std::size_t steps = state.actions.size();
    const bool between_episodes = state.observations.empty() && steps == 0;
    return state.rewards.size() == steps && state.discounts.size() == steps && steps < n_ &&
           (between_episodes || state.observations.size() == steps + 1);
  }

  // The transition from pending step i to s_t.
  void Emit(std::size_t i, const Observation& s_t) {
    const NStepReturn folded = AccumulateNStep(std::span(pending_.rewards).subspan(i),
                                               std::span(pending_.discounts).subspan(i));
    emitted_.push_back({.s_tm1 = pending_.observations[i],
                        .a_tm1 = pending_.actions[i],
                        .r_t = folded.reward,
                        .discount_t = folded.discount,
                        .s_t = s_t});
  }

  void DropOldest() {
    pending_.observations.erase(pending_.observations.begin());
    pending_.actions.erase(pending_.actions.begin());
    pending_.rewards.erase(pending_.rewards.begin());
    pending_.discounts.erase(pending_.discounts.begin());
  }

  std::size_t n_;
  State pending_;  // fewer than n steps between calls; empty between episodes
  std::vector<Transition<Observation>> emitted_;
};

}  // namespace uper
