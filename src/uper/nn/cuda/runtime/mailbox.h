#pragma once

#include "uper/base/check.h"

namespace uper {

// Looks on until the GPU has shown something in the host's memory: sooner than the end of what it
// does is known. is_done(): whether all of that has ended; throws if it went wrong.
template <typename IsShown, typename IsDone>
void AwaitShown(const IsShown& is_shown, const IsDone& is_done) {
  constexpr int kLooks = 1 << 14;  // between two questions, which take longer
  for (int looks = 1; !is_shown(); ++looks) {
    if (looks % kLooks == 0 && is_done()) {  // then it is shown, now at the latest
      UPER_CHECK(is_shown(), "the GPU ended without showing what it was to show");
      return;
    }
  }
}

}  // namespace uper
