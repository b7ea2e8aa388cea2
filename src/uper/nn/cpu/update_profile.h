#pragma once

#include <array>
#include <chrono>
#include <cstddef>

namespace uper::cpu {

// The phases of an update on the CPU, in their order. A phase ends when all threads have finished
// it.
enum class UpdatePhase {
  kConvolutions,     // forward, all passes
  kDense,            // forward, hidden layer included
  kTargetActions,    // mean weights of the heads, and the greedy actions
  kHead,             // forward, for the chosen and the taken actions
  kSamples,          // loss, its derivative with respect to the outputs, statistics
  kBackwardHead,     // gradient with respect to the hidden layer
  kBackwardInputs,   // gradients with respect to the inputs of the other layers
  kBackwardWeights,  // gradients of all weights except those of the head, and the norm
  kOptimizer,        // applies the gradient, and computes that of the head on the way
};
inline constexpr std::size_t kUpdatePhases = 9;

// Adds up the time that updates spend in each phase. Not thread-safe.
class UpdateProfile {
 public:
  // The first phase begins now.
  void Start() { last_ = Clock::now(); }
  // The phase ends now, and the next one begins.
  void Lap(UpdatePhase phase) {
    const Clock::time_point now = Clock::now();
    seconds_[static_cast<std::size_t>(phase)] += std::chrono::duration<double>(now - last_).count();
    last_ = now;
  }
  double seconds(UpdatePhase phase) const { return seconds_[static_cast<std::size_t>(phase)]; }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point last_ = Clock::now();
  std::array<double, kUpdatePhases> seconds_{};
};

}  // namespace uper::cpu
