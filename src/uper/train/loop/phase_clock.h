#pragma once

#include <chrono>

#include "uper/metrics/time_breakdown.h"

namespace uper {

// Attributes time to phases, each moment to one: a phase that begins inside another one suspends
// it. Results do not depend on the times. Not thread-safe.
class PhaseClock {
 public:
  using Phase = double TimeBreakdown::*;

  // A phase that lasts as long as this object.
  class Scope {
   public:
    Scope(PhaseClock& clock, Phase phase) : clock_(clock), outer_(clock.Enter(phase)) {}
    ~Scope() { clock_.Enter(outer_); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    PhaseClock& clock_;
    const Phase outer_;
  };

  const TimeBreakdown& times() const { return times_; }
  // Moves time that was attributed to the wrong phase.
  void Move(double seconds, Phase from, Phase to) {
    times_.*from -= seconds;
    times_.*to += seconds;
  }

 private:
  using Clock = std::chrono::steady_clock;

  // Returns the phase that it ends; nullptr: none.
  Phase Enter(Phase phase) {
    const Clock::time_point now = Clock::now();
    if (phase_ != nullptr) times_.*phase_ += std::chrono::duration<double>(now - since_).count();
    since_ = now;
    const Phase ended = phase_;
    phase_ = phase;
    return ended;
  }

  TimeBreakdown times_;
  Phase phase_ = nullptr;
  Clock::time_point since_;
};

}  // namespace uper
