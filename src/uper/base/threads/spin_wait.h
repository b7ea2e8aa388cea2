#pragma once

#include <thread>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace uper {

// Between two looks at something that another thread is about to change, the looks counted from 0:
// after some 200 microseconds whoever else wants the core gets it.
inline void SpinOrYield(int looks) {
  constexpr int kLooksAlone = 6'000;
  if (looks >= kLooksAlone) {
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
