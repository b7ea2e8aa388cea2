#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <utility>

#include "uper/replay/transition_replay.h"

namespace uper {

// A TransitionReplay for several writers while a sampler draws and updates: one mutex guards each
// call. Every call sees a consistent memory. An item that is evicted between its draw and its
// update is counted and never confused with its successor.
//
// Results are not repeatable: the scheduler decides which writer comes first, so ids, masks and
// draws differ from run to run. A deterministic run uses TransitionReplay from one thread. Two
// calls are not atomic together: a frame of one call may be gone at the next, if the other writers
// have added frame_capacity frames between the two. Add then throws and stores nothing.
template <typename Observations>
class SharedReplay {
 public:
  using Replay = TransitionReplay<Observations>;
  using Observation = typename Replay::Observation;

  explicit SharedReplay(Replay replay) : replay_(std::move(replay)) {}

  std::uint64_t AddFrame(std::span<const std::uint8_t> pixels)
    requires std::same_as<Observations, FrameStore>
  {
    const std::lock_guard lock(mutex_);
    return replay_.AddFrame(pixels);
  }

  std::uint64_t Add(const Transition<Observation>& transition) {
    const std::lock_guard lock(mutex_);
    return replay_.Add(transition);
  }

  std::uint64_t Add(const Transition<Observation>& transition, double priority) {
    const std::lock_guard lock(mutex_);
    return replay_.Add(transition, priority);
  }

  // Draws nothing and returns false while fewer than `min_size` transitions are stored. REQUIRES:
  // min_size >= 1.
  bool TrySample(const WeightOptions& options, std::size_t min_size, const BatchView& out) {
    UPER_CHECK(min_size >= 1, "nothing can be drawn from an empty memory");
    const std::lock_guard lock(mutex_);
    if (replay_.size() < min_size) return false;
    replay_.Sample(options, out);
    return true;
  }

  UpdateCounts SetPriorities(std::span<const std::uint64_t> ids,
                             std::span<const double> priorities) {
    const std::lock_guard lock(mutex_);
    return replay_.SetPriorities(ids, priorities);
  }

  std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return replay_.size();
  }

  ReplayCounters counters() const {
    const std::lock_guard lock(mutex_);
    return replay_.buffer().counters();
  }

  // Calls function(replay) while all other callers wait: for saving, checking, changing exponents.
  template <typename Function>
  decltype(auto) WithLock(Function&& function) {
    const std::lock_guard lock(mutex_);
    return std::forward<Function>(function)(replay_);
  }

 private:
  mutable std::mutex mutex_;
  Replay replay_;  // guarded by mutex_
};

}  // namespace uper
