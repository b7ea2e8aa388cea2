#pragma once

#include <cstdint>

namespace uper {

// One or several environment steps as the learner sees them:
//   target = r_t + discount_t * V(s_t).
// `Observation` is the form that the storage takes: bytes, or the frame ids of a stack.
template <typename Observation>
struct Transition {
  Observation s_tm1;
  std::int32_t a_tm1 = 0;
  double r_t = 0;
  double discount_t = 0;
  Observation s_t;
  bool noisy = false;  // injected noise touched one of its steps (telemetry)

  bool operator==(const Transition&) const = default;
};

}  // namespace uper
