#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <utility>

#include "uper/replay/transition_replay.h"

namespace uper {

// A TransitionReplay that several writers may fill while a sampler draws and updates: one mutex
// around each call, released by exceptions too. Every call sees a consistent memory, and an item
// that is evicted between its draw and its update is counted, not confused with its successor.
//
// Not promised: repeatable results. Which writer comes first is up to the scheduler, so ids, masks
// and draws differ from run to run; a run that promises determinism uses TransitionReplay from one
// thread. Two calls are not one: a frame added by one call may be gone at the next if the other
// writers added frame_capacity frames meanwhile (Add then throws and nothing is stored).
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

  // False, and nothing drawn, while fewer than `min_size` transitions are stored.
  // REQUIRES: min_size >= 1.
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

  // Calls function(replay) while everybody else waits: for saving, checking, changing exponents.
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
