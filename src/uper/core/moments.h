#pragma once

#include <cstddef>
#include <span>

namespace uper {

// The sum in one fixed order that a compiler can vectorize. Lane i adds every eighth value; then
// the lanes are added pairwise.
inline double LaneSum(std::span<const double> values) {
  constexpr std::size_t kLanes = 8;
  double lanes[kLanes] = {};
  std::size_t i = 0;
  for (; i + kLanes <= values.size(); i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) lanes[lane] += values[i + lane];
  }
  for (std::size_t lane = 0; i + lane < values.size(); ++lane) lanes[lane] += values[i + lane];
  return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) +
         ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

// Mean and population variance (divided by n). Two passes over the distances to the first value
// avoid cancellation for large offsets. Equal values have a variance of exactly 0.
struct Moments {
  double mean = 0;
  double variance = 0;
};

// REQUIRES: not empty.
template <typename Real>
Moments ComputeMoments(std::span<const Real> values) {
  const double n = static_cast<double>(values.size());
  const double origin = static_cast<double>(values[0]);
  double sum = 0;
  for (const Real value : values) sum += static_cast<double>(value) - origin;
  const double mean = sum / n;  // relative to the origin
  double squares = 0;
  for (const Real value : values) {
    const double deviation = (static_cast<double>(value) - origin) - mean;
    squares += deviation * deviation;
  }
  return {.mean = origin + mean, .variance = squares / n};
}

// Moments of a sequence that arrives in blocks (Chan et al. 1983). `squares` is a sum of
// non-negative terms. Not thread-safe.
struct RunningMoments {
  double count = 0;
  double mean = 0;
  double squares = 0;  // sum of squared deviations from the mean

  double variance() const { return squares / count; }

  void Merge(const RunningMoments& other) {
    if (count == 0) {
      *this = other;
      return;
    }
    const double all = count + other.count;
    const double distance = other.mean - mean;
    squares += other.squares + distance * distance * (count * other.count / all);
    mean += distance * (other.count / all);
    count = all;
  }

  void Add(double value) { Merge({.count = 1, .mean = value}); }
};

}  // namespace uper
