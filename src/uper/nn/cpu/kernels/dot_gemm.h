#pragma once

#include <cstddef>

namespace uper::cpu {

// A matrix product whose sum runs along memory in both matrices:
//
//   C[r, n] = sum over s < segments, i < length of A(r, s, i) * B(n, s, i)
//   A(r, s, i) = a[r * a_row_stride + a_segments[s] + i]
//   B(n, s, i) = b[b_columns[n] + b_segments[s] + i]
//   C[r, n]    = c[c_columns[n] + r]
//
// There are 16 partial sums (element i of a segment goes to sum i % 16). Each is one chain of fused
// multiply-adds in ascending (s, i); then they are added as a fixed tree. A segment of a column is
// skipped where active[active_columns[n] + s] is 0: the caller sets this for segments that are all
// zero. REQUIRES: all tables set.
struct DotProblem {
  int rows = 0;
  int columns = 0;
  const float* a = nullptr;
  std::ptrdiff_t a_row_stride = 0;
  const std::ptrdiff_t* a_segments = nullptr;
  const float* b = nullptr;
  const std::ptrdiff_t* b_columns = nullptr;
  const std::ptrdiff_t* b_segments = nullptr;
  const char* active = nullptr;
  const std::ptrdiff_t* active_columns = nullptr;
  int segments = 1;
  int length = 0;
  float* c = nullptr;
  const std::ptrdiff_t* c_columns = nullptr;
};

// Runs on the calling thread; allocates nothing.
void DotGemm(const DotProblem& problem);

}  // namespace uper::cpu
