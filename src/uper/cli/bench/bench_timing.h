#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <vector>

#include "uper/base/error.h"
#include "uper/base/threads/parallel.h"

namespace uper {

// What the benchmarks share: a quantity measured several times, with its spread.

struct Timing {
  double median = 0;
  double low = 0;
  double high = 0;
};

// Of one or more values; the median of an even number is the upper of the two in the middle.
inline Timing Summary(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return {.median = values[values.size() / 2], .low = values.front(), .high = values.back()};
}

// In another unit. REQUIRES: factor > 0.
inline Timing Scaled(const Timing& timing, double factor) {
  return {
      .median = timing.median * factor, .low = timing.low * factor, .high = timing.high * factor};
}

// [low, high], as the key `..._spread` holds it.
inline nlohmann::ordered_json SpreadJson(const Timing& timing) {
  return nlohmann::ordered_json{timing.low, timing.high};
}

// What the scripts in benchmarks/ print: {"median": m, "low": l, "high": h}.
inline Timing TimingFrom(const nlohmann::json& json) {
  return {.median = json.at("median"), .low = json.at("low"), .high = json.at("high")};
}

inline double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

struct MeasureOptions {
  int repeats = 7;
  double least_seconds = 0.1;  // of one measurement
  int calls_per_look = 1;      // calls between two looks at the clock
};

// Seconds a call. `call` gets a number that is another one each time. Throws Error(kInterrupted).
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

}  // namespace uper
