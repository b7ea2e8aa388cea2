#pragma once

#include <algorithm>
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

// An environment's report of one step.
struct StepOutcome {
  double reward = 0;
  double discount = 1;      // 0 where the agent must not bootstrap (also in mid-episode: life loss)
  bool terminated = false;  // the episode is over; its discount counts as 0
  bool truncated = false;   // the episode was cut; the final observation bootstraps
  bool noisy = false;       // injected noise touched the step (telemetry)
};

// Folds the steps of *one* environment into n-step transitions; each environment has its own
// accumulator, so steps of different ones never mix. It emits a transition once n steps exist. At
// the end of an episode it also emits the shorter tails, which end in the final observation, so
// every step starts exactly one transition. A transition is noisy if one of its steps was. If an
// `Observation` refers to the caller's memory, that must stay valid for n further steps. O(n) per
// step, without allocation. Not thread-safe.
template <typename Observation>
class NStepAccumulator {
 public:
  struct State {
    std::vector<Observation> observations;  // s of each pending step, and the current one
    std::vector<std::int32_t> actions;
    std::vector<double> rewards;
    std::vector<double> discounts;
    std::vector<std::uint8_t> noisy;

    void Clear() {
      observations.clear();
      actions.clear();
      rewards.clear();
      discounts.clear();
      noisy.clear();
    }
    void DropOldest() {
      observations.erase(observations.begin());
      actions.erase(actions.begin());
      rewards.erase(rewards.begin());
      discounts.erase(discounts.begin());
      noisy.erase(noisy.begin());
    }
  };

  // REQUIRES: n >= 1.
  explicit NStepAccumulator(std::size_t n) : n_(n) {
    UPER_CHECK(n >= 1, "at least one step");
    Reserve();
  }

  // Starts an episode with its first observation. Drops an unfinished episode with its pending
  // steps: end it with `truncated` to keep them.
  void Start(Observation s_0) {
    pending_.Clear();
    pending_.observations.push_back(std::move(s_0));
  }

  // Adds the step that took `action` in the current observation and led to s_t. Returns the
  // transitions that it completes, oldest first, valid until the next call. REQUIRES: Start() was
  // called since the last end of an episode.
  std::span<const Transition<Observation>> Step(std::int32_t action, const StepOutcome& outcome,
                                                Observation s_t) {
    UPER_CHECK(!pending_.observations.empty(), "an episode must be started first");
    emitted_.clear();
    pending_.actions.push_back(action);
    pending_.rewards.push_back(outcome.reward);
    pending_.discounts.push_back(outcome.terminated ? 0.0 : outcome.discount);
    pending_.noisy.push_back(outcome.noisy ? 1 : 0);
    const bool last = outcome.terminated || outcome.truncated;
    if (last) {
      for (std::size_t i = 0; i < pending_.actions.size(); ++i) Emit(i, s_t);
      pending_.Clear();
      return emitted_;
    }
    if (pending_.actions.size() == n_) {
      Emit(0, s_t);
      pending_.DropOldest();
    }
    pending_.observations.push_back(std::move(s_t));
    return emitted_;
  }

  const State& GetState() const { return pending_; }
  // Throws Error(kCorrupt) and changes nothing if the state does not fit.
  void SetState(State state) {
    if (!Fits(state)) throw Error(ErrorKind::kCorrupt, "pending steps do not fit");
    pending_ = std::move(state);
    Reserve();
    emitted_.clear();
  }
  void CheckValid() const { UPER_CHECK(Fits(pending_), "pending steps are inconsistent"); }

 private:
  bool Fits(const State& state) const {
    const std::size_t steps = state.actions.size();
    const bool between_episodes = state.observations.empty() && steps == 0;
    return state.rewards.size() == steps && state.discounts.size() == steps &&
           state.noisy.size() == steps && steps < n_ &&
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
                        .s_t = s_t,
                        .noisy = std::find(pending_.noisy.begin() + static_cast<std::ptrdiff_t>(i),
                                           pending_.noisy.end(), 1) != pending_.noisy.end()});
  }

  // Room for n steps, so that Step() allocates nothing.
  void Reserve() {
    pending_.observations.reserve(n_ + 1);
    pending_.actions.reserve(n_);
    pending_.rewards.reserve(n_);
    pending_.discounts.reserve(n_);
    pending_.noisy.reserve(n_);
    emitted_.reserve(n_);
  }

  std::size_t n_;
  State pending_;  // fewer than n steps between calls; empty between episodes
  std::vector<Transition<Observation>> emitted_;
};

}  // namespace uper
