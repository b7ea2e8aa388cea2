#pragma once

#include <chrono>

namespace uper {

// Seconds of wall-clock time from `start` to now.
inline double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace uper
