#pragma once

#include <thread>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace uper {

// Call it between two reads of a value that another thread is about to change; `spins` counts the
// calls from 0. After about 200 microseconds it yields the core to other threads.
inline void SpinOrYield(int spins) {
  constexpr int kSpinsAlone = 6'000;
  if (spins >= kSpinsAlone) {
    std::this_thread::yield();
    return;
  }
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace uper
