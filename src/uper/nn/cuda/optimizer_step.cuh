#pragma once

#include "uper/nn/cuda/optimizer_kernels.h"

namespace uper {

// The step on one parameter, and what it needs to know.

__device__ inline bool IsDue(StepKind kind, const StepState& state) {
  switch (kind) {
    case StepKind::kAhead:
      return true;
    case StepKind::kAgain:
      return state.finite != 0 && state.gradient_scale < 1;
    case StepKind::kPlain:
      return state.finite != 0;
  }
  return false;
}

// The constants in the precision that the loops use.
struct StepConstants {
  float decay1, other1, decay2, other2, epsilon;
  float gradient_scale, rate, root_scale;
  bool inside_root;
};
__device__ inline StepConstants StepConstantsOf(const OptimizerRules& rules, StepKind kind,
                                                const StepState& state) {
  return {.decay1 = static_cast<float>(rules.decay1),
          .other1 = static_cast<float>(1 - rules.decay1),
          .decay2 = static_cast<float>(rules.decay2),
          .other2 = static_cast<float>(1 - rules.decay2),
          .epsilon = static_cast<float>(rules.epsilon),
          .gradient_scale = kind == StepKind::kAhead ? 1.0F : state.gradient_scale,
          .rate = state.rate,
          .root_scale = state.root_scale,
          .inside_root = rules.inside_root};
}

// Within an ulp or two of the rounded results, and several times cheaper: the optimiser must keep
// up with memory.
__device__ inline float FastRoot(float x) {
  float root;
  asm("sqrt.approx.f32 %0, %1;" : "=f"(root) : "f"(x));
  return root;
}

// One parameter; g is already scaled.
template <bool kAdam>
__device__ void Step(const StepConstants& c, float g, float& p, float& m, float& v) {
  m = fmaf(c.decay1, m, c.other1 * g);
  v = fmaf(c.decay2, v, c.other2 * (g * g));
  if (kAdam) {
    p -= __fdividef(c.rate * m, fmaf(FastRoot(v), c.root_scale, c.epsilon));
  } else {
    const float variance = fmaxf(0.0F, fmaf(-m, m, v));
    const float divisor =
        c.inside_root ? FastRoot(variance + c.epsilon) : FastRoot(variance) + c.epsilon;
    p -= __fdividef(c.rate * g, divisor);
  }
}

}  // namespace uper
