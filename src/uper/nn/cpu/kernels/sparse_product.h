#pragma once

#include <cstddef>

namespace uper::cpu {

// The product of a matrix with many zeros (activations after ReLU: about half of them) and a dense
// one:
//
//   C[r, n] = finish(start + sum over k < length with A(r, k) != 0 of A(r, k) * B[k, n])
//   A(r, k) = a[r * a_row + k * a_step]
//
// The sum is one chain of fused multiply-adds in ascending k: C may be computed in any pieces to
// the same bits. A zero factor would add nothing, unless its factor in B is not finite (see Dense).
// REQUIRES: a_row = 1 or a_step = 1.
struct SparseProblem {
  int rows = 0;
  int columns = 0;
  int length = 0;

  const float* a = nullptr;
  std::ptrdiff_t a_row = 1;
  std::ptrdiff_t a_step = 1;
  const float* b = nullptr;
  std::ptrdiff_t b_step = 0;
  float* c = nullptr;
  std::ptrdiff_t c_row = 0;

  // Sums begin with start[n], with 0 when that is null, or with C[r, n] when start_with_result.
  const float* start = nullptr;
  bool start_with_result = false;
  bool relu = false;  // finishes with max(sum, 0)
};

// Runs on the calling thread; allocates nothing.
void SparseProduct(const SparseProblem& problem);

}  // namespace uper::cpu
