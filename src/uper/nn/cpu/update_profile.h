#pragma once

#include <array>
#include <chrono>
#include <cstddef>

namespace uper {

// The parts of an update on the CPU, in their order. One ends where all threads have met.
enum class UpdatePhase {
  kConvolutions,     // forward, of all passes
  kDense,            // forward, hidden layer included
  kTargetActions,    // averages of the heads and the greedy actions
  kHead,             // forward, of the actions chosen and taken
  kSamples,          // loss, its gradient by the outputs, statistics
  kBackwardHead,     // gradient by the hidden layer
  kBackwardInputs,   // gradients by the inputs of the other layers
  kBackwardWeights,  // gradients by all weights but the head's, and the norm
  kOptimizer,        // its step, with the head's gradient made on the way
};
inline constexpr std::size_t kStepParts = 9;

// Adds up where the time of updates goes. Not thread-safe.
class UpdateProfile {
 public:
  // A part begins now.
  void Start() { last_ = Clock::now(); }
  // The part ends now, and the next one begins.
  void Lap(UpdatePhase part) {
    const Clock::time_point now = Clock::now();
    seconds_[static_cast<std::size_t>(part)] += std::chrono::duration<double>(now - last_).count();
    last_ = now;
  }
  double seconds(UpdatePhase part) const { return seconds_[static_cast<std::size_t>(part)]; }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point last_ = Clock::now();
  std::array<double, kStepParts> seconds_{};
};

}  // namespace uper
