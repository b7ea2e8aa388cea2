#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <vector>

#include "uper/base/error.h"
#include "uper/base/seconds_since.h"
#include "uper/base/threads/parallel.h"

namespace uper::cli {

// Shared by the benchmarks: a quantity that is measured several times, with its spread.

struct Timing {
  double median = 0;
  double low = 0;
  double high = 0;
};

// REQUIRES: at least one value. For an even number of values the median is the upper middle one.
inline Timing Summary(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return {.median = values[values.size() / 2], .low = values.front(), .high = values.back()};
}

// The timing in another unit. REQUIRES: factor > 0.
inline Timing Scaled(const Timing& timing, double factor) {
  return {
      .median = timing.median * factor, .low = timing.low * factor, .high = timing.high * factor};
}

// [low, high]: the value of a key `..._spread`.
inline nlohmann::ordered_json SpreadJson(const Timing& timing) {
  return nlohmann::ordered_json{timing.low, timing.high};
}

// Reads {"median": m, "low": l, "high": h}, which the scripts in benchmarks/ print.
inline Timing TimingFrom(const nlohmann::json& json) {
  return {.median = json.at("median"), .low = json.at("low"), .high = json.at("high")};
}

struct MeasureOptions {
  int repeats = 7;
  double least_seconds = 0.1;  // of each measurement
  int calls_per_look = 1;      // calls before the clock is read again
};

// Seconds per call. `call` gets a new number each time. Throws Error(kInterrupted).
inline Timing MeasureSeconds(const MeasureOptions& options, const StopFlag& stop,
                             const std::function<void(std::uint64_t)>& call) {
  std::vector<double> values;
  std::uint64_t number = 0;
  for (int repeat = 0; repeat < options.repeats; ++repeat) {
    const std::uint64_t first = number;
    const auto start = std::chrono::steady_clock::now();
    double elapsed = 0;
    do {
      if (stop) throw Error(ErrorKind::kInterrupted, "interrupted");
      for (int i = 0; i < options.calls_per_look; ++i) call(number++);
      elapsed = SecondsSince(start);
    } while (elapsed < options.least_seconds);
    values.push_back(elapsed / static_cast<double>(number - first));
  }
  return Summary(std::move(values));
}

}  // namespace uper::cli
