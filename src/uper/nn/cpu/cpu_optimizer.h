#pragma once

#include <cstdint>
#include <span>

#include "uper/base/thread_pool.h"
#include "uper/nn/optimizer.h"

namespace uper {

// Passes over whole parameter buffers, each one pass over memory on all threads of the pool. Every
// entry is computed alone (and the norm in a fixed order), so results do not depend on threads or
// instruction set. Nothing allocates. Spans of one call have equal sizes.

// Parameters, gradient and state of one update; the gradient is multiplied by gradient_scale
// (ClipScale()) on the way. m and v start as zeros.
struct OptimizerBuffers {
  std::span<float> parameters;
  std::span<const float> gradient;
  std::span<float> m;
  std::span<float> v;
};

// `step` counts updates from 1, for Adam's bias correction.
void AdamStep(const AdamOptions& options, std::int64_t step, double gradient_scale,
              const OptimizerBuffers& buffers, ThreadPool& pool);

void RmsPropStep(const RmsPropOptions& options, double gradient_scale,
                 const OptimizerBuffers& buffers, ThreadPool& pool);

// The L2 norm, in double: sums of fixed pieces of the buffer, added in order.
double GlobalNorm(std::span<const float> gradient, ThreadPool& pool);

// to = from: the target copy.
void CopyParameters(std::span<const float> from, std::span<float> to, ThreadPool& pool);

}  // namespace uper
