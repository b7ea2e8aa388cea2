#pragma once

#include "uper/nn/cuda/optimizer/optimizer_kernels.h"

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

// The rules in the precision that the loops use: made on the host, because every thread needs them.
struct StepRules {
  float decay1, other1, decay2, other2, epsilon;
  bool inside_root;

  explicit StepRules(const OptimizerRules& rules)
      : decay1(static_cast<float>(rules.decay1)),
        other1(static_cast<float>(1 - rules.decay1)),
        decay2(static_cast<float>(rules.decay2)),
        other2(static_cast<float>(1 - rules.decay2)),
        epsilon(static_cast<float>(rules.epsilon)),
        inside_root(rules.inside_root) {}
};

// What changes from step to step.
struct StepScales {
  float gradient_scale, rate, root_scale;
};
__device__ inline StepScales StepScalesOf(StepKind kind, const StepState& state) {
  return {.gradient_scale = kind == StepKind::kAhead ? 1.0F : state.gradient_scale,
          .rate = state.rate,
          .root_scale = state.root_scale};
}

// Within an ulp or two of the rounded results (below 1e-38: of 0), and several times cheaper: the
// optimiser must keep up with memory.
__device__ inline float FastRoot(float x) {
  float root;
  asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(root) : "f"(x));
  return root;
}
__device__ inline float FastRatio(float x, float y) {
  float ratio;
  asm("div.approx.ftz.f32 %0, %1, %2;" : "=f"(ratio) : "f"(x), "f"(y));
  return ratio;
}

// One parameter; g is already scaled.
template <bool kAdam>
__device__ void Step(const StepRules& rules, const StepScales& scales, float g, float& p, float& m,
                     float& v) {
  m = fmaf(rules.decay1, m, rules.other1 * g);
  v = fmaf(rules.decay2, v, rules.other2 * (g * g));
  if (kAdam) {
    p -= FastRatio(scales.rate * m, fmaf(FastRoot(v), scales.root_scale, rules.epsilon));
  } else {
    const float variance = fmaxf(0.0F, fmaf(-m, m, v));
    const float divisor =
        rules.inside_root ? FastRoot(variance + rules.epsilon) : FastRoot(variance) + rules.epsilon;
    p -= FastRatio(scales.rate * g, divisor);
  }
}

}  // namespace uper
