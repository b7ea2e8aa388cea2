#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <variant>

#include "uper/nn/cuda/head/head_kernels.h"
#include "uper/nn/cuda/loss/loss_kernels.h"
#include "uper/nn/optimizer.h"

namespace uper::cuda {

// The optimizers on the GPU (formulas: nn/optimizer.h). Everything that changes between updates is
// in the GPU's memory, so that each update is the same sequence of kernels.

struct OptimizerRules {
  bool adam = true;
  double learning_rate = 0;
  double first_moment_decay = 0;   // of m; RMSProp has one decay for both
  double second_moment_decay = 0;  // of v
  double epsilon = 0;
  bool epsilon_inside_root = false;  // EpsilonPlacement::kInsideRoot; RMSProp only
  double max_global_norm = 0;
};
OptimizerRules RulesOf(const std::variant<AdamOptions, RmsPropOptions>& optimizer,
                       double max_global_norm);

// The optimizer's scalars, and the outcome of the last update.
struct UpdateState {
  std::int64_t updates = 0;
  double loss = 0;
  double gradient_norm = 0;  // before clipping
  int finite = 1;            // 0: the update was skipped
  float gradient_scale = 1;  // less than 1: the gradient was clipped
  float rate = 0;            // Adam: learning rate / (1 - first_moment_decay^t)
  float root_scale = 1;      // Adam: 1 / sqrt(1 - second_moment_decay^t)
};

// p, m and v of the parameters. An update reads one set and writes the other, so that it can be
// skipped or repeated.
struct ParameterBlock {
  float* p = nullptr;
  float* m = nullptr;
  float* v = nullptr;
};
struct ParameterUpdate {
  ParameterBlock from;
  ParameterBlock to;
};

// When parameters are updated. The gradient norm is known last but rarely matters. So most
// parameters are updated before it is known, as if nothing were to be clipped, and again if the
// gradient was clipped.
enum class OptimizerPass {
  kSpeculative,  // before the norm is known, without clipping
  kRedo,         // after the norm is known, only if the gradient was clipped
  kFinal,        // after the norm is known
};

// A range of the parameters.
struct GradientRange {
  std::size_t begin = 0;
  std::size_t end = 0;
};

// Computes the constants of the next update that do not depend on the gradient.
void LaunchBeginUpdate(const OptimizerRules& rules, UpdateState* state, cudaStream_t stream);

// Reduces loss and gradient norm, decides whether to apply and clip the update, and applies it to
// the parameters with a stored gradient.
struct FinishUpdate {
  OptimizerRules rules;
  const double* squares = nullptr;  // [square_count]
  int square_count = 0;
  const MemberLoss* members = nullptr;
  int member_count = 0;
  UpdateState* state = nullptr;
  UpdateState* report = nullptr;  // a copy for the host

  const float* gradient = nullptr;  // of all parameters
  ParameterUpdate parameters;
  GradientRange remaining;    // not updated yet
  GradientRange speculative;  // updated speculatively: redone if the gradient was clipped
  // The head's bias and its means; only if mean_weights.member_bias is not null.
  HeadShape shape;
  std::size_t bias = 0;  // its first entry
  // If mean_weights.ensemble_weights is not null: computes it from member_weights of the
  // speculative update.
  HeadMeanWeightPointers mean_weights;
};
void LaunchFinishUpdate(const FinishUpdate& call, cudaStream_t stream);

// Whether the head's update takes longer than everything that can run beside it. Then it is
// enqueued first and has the GPU to itself. Results do not change.
bool IsLongHeadUpdate(const HeadShape& shape);

// Updates the head's weights; their gradient is formed in registers. `weights` starts at the head's
// weights. Also updates the mean weights, except the ensemble mean of a speculative update with a
// shared hidden layer: LaunchFinishUpdate() does that.
void LaunchHeadOptimizer(const OptimizerRules& rules, OptimizerPass pass, const HeadShape& shape,
                         const HeadGradient& gradient, const ParameterUpdate& weights,
                         const UpdateState* state, const HeadMeanWeightPointers& mean_weights,
                         cudaStream_t stream, LaunchOrder order = LaunchOrder::kSerial);

}  // namespace uper::cuda
