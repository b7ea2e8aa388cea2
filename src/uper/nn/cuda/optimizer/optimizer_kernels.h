#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <variant>

#include "uper/nn/cuda/head/head_kernels.h"
#include "uper/nn/cuda/loss/loss_kernels.h"
#include "uper/nn/optimizer.h"

namespace uper {

// The optimisers on the GPU (formulas: nn/optimizer.h), with everything that changes from update to
// update in the GPU's memory, so that an update is the same sequence of kernels every time.

struct OptimizerRules {
  bool adam = true;
  double learning_rate = 0;
  double decay1 = 0;  // of m; RMSProp has one decay
  double decay2 = 0;  // of v
  double epsilon = 0;
  bool inside_root = false;  // RMSProp
  double max_global_norm = 0;
};
OptimizerRules RulesOf(const std::variant<AdamOptions, RmsPropOptions>& optimizer,
                       double max_global_norm);

// State of the optimiser beside its buffers, and what it found out in the last update.
struct StepState {
  std::int64_t updates = 0;
  double loss = 0;
  double gradient_norm = 0;  // before clipping
  int finite = 1;            // 0: the update was left out
  float gradient_scale = 1;  // below 1: clipped
  float rate = 0;            // Adam: learning rate / (1 - decay1^t)
  float root_scale = 1;      // Adam: 1 / sqrt(1 - decay2^t)
};

// p, m and v of the parameters. A step reads one set and writes another, so that nothing is lost
// when it must be left out or taken again.
struct ParameterBlock {
  float* p = nullptr;
  float* m = nullptr;
  float* v = nullptr;
};
struct ParameterStep {
  ParameterBlock from;
  ParameterBlock to;
};

// When a step is taken. The norm is known last, but hardly ever matters: most of the work is done
// before it, as if nothing were to be clipped, and again if something was.
enum class StepKind {
  kAhead,  // before the norm is known, unclipped
  kAgain,  // after it: only if the gradient was clipped
  kPlain,  // after it
};

// A part of the parameters.
struct GradientRange {
  std::size_t begin = 0;
  std::size_t end = 0;
};

// The constants of the next step that do not depend on the gradient.
void LaunchBeginStep(const OptimizerRules& rules, StepState* state, cudaStream_t stream);

// Loss and norm from their parts, with them whether and how the step is taken, and the step on the
// parameters whose gradient lies in memory.
struct FinishStep {
  OptimizerRules rules;
  const double* squares = nullptr;  // [square_count]
  int square_count = 0;
  const MemberFindings* members = nullptr;
  int member_count = 0;
  StepState* state = nullptr;
  StepState* report = nullptr;  // a copy for the host

  const float* gradient = nullptr;  // of all parameters
  ParameterStep parameters;
  GradientRange plain;  // not stepped yet
  GradientRange ahead;  // stepped ahead: once more if the gradient was clipped
  // The head's bias, with its averages; if tables.member_bias is not null.
  HeadShape shape;
  std::size_t bias = 0;  // its first entry
  // If tables.mean_weights is not null: also from member_weights, as a step ahead has left them.
  HeadTablePointers tables;
};
void LaunchFinishStep(const FinishStep& call, cudaStream_t stream);

// Whether the head's step takes longer than all that can run beside it: then it comes first, and
// the GPU is its own. No result depends on it.
bool IsLongHeadStep(const HeadShape& shape);

// One step on the head's weights, whose gradient is formed in registers; the averages of the
// weights follow on the way, but for those over members that share the hidden layer of a step
// ahead, which LaunchFinishStep() makes. `weights` starts at the head's weights.
void LaunchHeadOptimizer(const OptimizerRules& rules, StepKind kind, const HeadShape& shape,
                         const HeadGradient& gradient, const ParameterStep& weights,
                         const StepState* state, const HeadTablePointers& tables,
                         cudaStream_t stream, Follow follow = Follow::kAfter);

}  // namespace uper
