#pragma once

// Shared by the tests of this folder.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "uper/base/random.h"
#include "uper/replay/replay_buffer.h"

namespace uper {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(NDEBUG)
inline constexpr std::uint64_t kSlowBuild = 1;
#else
inline constexpr std::uint64_t kSlowBuild = 0;
#endif

// Repetitions of a long test: everything in release, a fraction where each step is much slower.
constexpr std::uint64_t Scaled(std::uint64_t release, std::uint64_t slow) {
  return kSlowBuild ? slow : release;
}

// Pearson's statistic of counts against probabilities over the cells of positive probability.
struct ChiSquare {
  double statistic = 0;
  double degrees = 0;

  // Mean + 5 standard deviations of the chi-square distribution: a false alarm has a chance of
  // about 1e-5 (the seeds are fixed anyway).
  double threshold() const { return degrees + 5 * std::sqrt(2 * degrees); }
};

inline ChiSquare ComputeChiSquare(std::span<const std::uint64_t> counts,
                                  std::span<const double> probabilities) {
  double draws = 0;
  for (const std::uint64_t count : counts) draws += static_cast<double>(count);
  ChiSquare result{.statistic = 0, .degrees = -1};
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (probabilities[i] == 0) continue;
    const double expected = draws * probabilities[i];
    const double difference = static_cast<double>(counts[i]) - expected;
    result.statistic += difference * difference / expected;
    result.degrees += 1;
  }
  return result;
}

// Memory for a sample.
struct SampleMemory {
  explicit SampleMemory(std::size_t batch) : ids(batch), probabilities(batch), weights(batch) {}

  SampleView view() { return {.ids = ids, .probabilities = probabilities, .weights = weights}; }
  bool operator==(const SampleMemory&) const = default;

  std::vector<std::uint64_t> ids;
  std::vector<double> probabilities;
  std::vector<float> weights;
};

// A buffer option set that tests vary.
inline ReplayBufferOptions SmallBuffer(std::size_t capacity, double exponent, double mix,
                                       SelectorKind kind = SelectorKind::kProportional) {
  return {.capacity = capacity,
          .selector = kind,
          .selection = {.priority_exponent = exponent, .uniform_mix = mix},
          .initial_priority = 1,
          .largest_priority_decay = 1};
}

}  // namespace uper
