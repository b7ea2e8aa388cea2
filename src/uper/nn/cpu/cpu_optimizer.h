#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>

#include "uper/base/threads/thread_pool.h"
#include "uper/nn/optimizer.h"

namespace uper::cpu {

// Work on parameter buffers. Every entry is computed alone, and sums of squares have a fixed order:
// results do not depend on threads or instruction set. Nothing allocates.

// Parameters, gradient and optimizer state, or the same range of each: spans of equal sizes. m and
// v start as zeros.
struct OptimizerBuffers {
  std::span<float> parameters;
  std::span<const float> gradient;
  std::span<float> m;
  std::span<float> v;
};

// A gradient [rows, columns] that is a sum of outer products and is never stored:
//   g[r, c] = sum over i < terms of rows_of[i][r] * columns_of[i][c],
// a chain of fused multiply-adds in ascending i, as Gemm() computes it. REQUIRES: at least
// kLeastColumns columns, and columns_of[i][c + columns] = columns_of[i][c] for c < kLeastColumns,
// because a vector may span the end of a row.
struct OuterProducts {
  static constexpr int kLeastColumns = 16;

  int rows = 0;
  int columns = 0;
  std::span<const float* const> rows_of;
  std::span<const float* const> columns_of;
};

namespace optimizer_internal {

struct AdamConstants {
  float first_moment_decay, one_minus_first_decay;
  float second_moment_decay, one_minus_second_decay;
  float rate;        // learning rate / (1 - first_moment_decay^t)
  float root_scale;  // 1 / sqrt(1 - second_moment_decay^t)
  float epsilon;
  float gradient_scale;
};

struct RmsPropConstants {
  float decay, one_minus_decay, rate, epsilon;
  EpsilonPlacement epsilon_placement;
  float gradient_scale;
};

}  // namespace optimizer_internal

// One update of the parameters by an optimizer. Any threads may apply it, in any pieces. It
// multiplies the gradient by gradient_scale (see ClipScale()).
class OptimizerUpdate {
 public:
  // `update` is the number of this update, from 1: Adam needs it for its bias correction.
  OptimizerUpdate(const AdamOptions& options, std::int64_t update, double gradient_scale);
  OptimizerUpdate(const RmsPropOptions& options, double gradient_scale);

  // One pass over the buffers on the calling thread.
  void Apply(const OptimizerBuffers& buffers) const;
  // The same for a block of parameters [rows, columns]; buffers.gradient is not used.
  void Apply(const OptimizerBuffers& buffers, const OuterProducts& gradient) const;

 private:
  std::variant<optimizer_internal::AdamConstants, optimizer_internal::RmsPropConstants> constants_;
};

// The sum of squares in double. 16 partial sums are added in ascending order.
double SumOfSquares(std::span<const float> values);

// to = from: the target copy.
void CopyParameters(std::span<const float> from, std::span<float> to, ThreadPool& pool);

}  // namespace uper::cpu
