#pragma once

#include "uper/nn/cuda/optimizer/optimizer_kernels.h"

namespace uper::cuda {

// The update of one parameter, and its constants.

__device__ inline bool IsDue(OptimizerPass pass, const UpdateState& state) {
  switch (pass) {
    case OptimizerPass::kSpeculative:
      return true;
    case OptimizerPass::kRedo:
      return state.finite != 0 && state.gradient_scale < 1;
    case OptimizerPass::kFinal:
      return state.finite != 0;
  }
  return false;
}

// The rules in the precision of the kernels. Made on the host, because every thread needs them.
struct UpdateRules {
  float first_moment_decay, one_minus_first_decay, second_moment_decay, one_minus_second_decay,
      epsilon;
  bool epsilon_inside_root;

  explicit UpdateRules(const OptimizerRules& rules)
      : first_moment_decay(static_cast<float>(rules.first_moment_decay)),
        one_minus_first_decay(static_cast<float>(1 - rules.first_moment_decay)),
        second_moment_decay(static_cast<float>(rules.second_moment_decay)),
        one_minus_second_decay(static_cast<float>(1 - rules.second_moment_decay)),
        epsilon(static_cast<float>(rules.epsilon)),
        epsilon_inside_root(rules.epsilon_inside_root) {}
};

// Factors that change from update to update.
struct UpdateScales {
  float gradient_scale, rate, root_scale;
};
__device__ inline UpdateScales UpdateScalesOf(OptimizerPass pass, const UpdateState& state) {
  return {.gradient_scale = pass == OptimizerPass::kSpeculative ? 1.0F : state.gradient_scale,
          .rate = state.rate,
          .root_scale = state.root_scale};
}

// Within an ulp or two of the correctly rounded results (below 1e-38: of 0), and several times
// cheaper: the optimizer must keep up with memory.
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

// Updates one parameter; g is already scaled.
template <bool kAdam>
__device__ void UpdateParameter(const UpdateRules& rules, const UpdateScales& scales, float g,
                                float& p, float& m, float& v) {
  m = fmaf(rules.first_moment_decay, m, rules.one_minus_first_decay * g);
  v = fmaf(rules.second_moment_decay, v, rules.one_minus_second_decay * (g * g));
  if (kAdam) {
    p -= FastRatio(scales.rate * m, fmaf(FastRoot(v), scales.root_scale, rules.epsilon));
  } else {
    const float variance = fmaxf(0.0F, fmaf(-m, m, v));
    const float divisor = rules.epsilon_inside_root ? FastRoot(variance + rules.epsilon)
                                                    : FastRoot(variance) + rules.epsilon;
    p -= FastRatio(scales.rate * g, divisor);
  }
}

}  // namespace uper::cuda
