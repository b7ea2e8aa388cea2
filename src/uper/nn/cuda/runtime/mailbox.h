#pragma once

#include "uper/base/check.h"

namespace uper::cuda {

// Spins until the GPU has published something in the host's memory. The host sees this sooner than
// the end of the kernel. is_done(): whether the publishing work has ended; throws if it failed.
template <typename IsPublished, typename IsDone>
void SpinUntilPublished(const IsPublished& is_published, const IsDone& is_done) {
  constexpr int kSpins = 1 << 14;  // between two calls of is_done(), which is slower
  for (int spins = 1; !is_published(); ++spins) {
    if (spins % kSpins == 0 && is_done()) {  // then it must be published by now
      UPER_CHECK(is_published(), "the GPU ended without publishing its results");
      return;
    }
  }
}

}  // namespace uper::cuda
