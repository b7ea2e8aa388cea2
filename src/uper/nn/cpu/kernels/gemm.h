#pragma once

#include <cstddef>

namespace uper::cpu {

// Where the rows of a matrix begin, in floats from its base: a table, or a stride.
struct RowPlaces {
  const std::ptrdiff_t* offsets = nullptr;
  std::ptrdiff_t stride = 0;  // used if there is no table

  std::ptrdiff_t operator[](int row) const { return offsets ? offsets[row] : row * stride; }
};

enum class GemmStart { kZero, kBias, kResult };      // sums begin with 0, bias[n] or C[r, n]
enum class GemmFinish { kStore, kStoreRelu, kAdd };  // C = sum, max(sum, 0), or C + sum

// The matrix product behind every layer:
//
//   C[r, n] = finish(start + sum over s < segments, i < length of A(r, s, i) * B(s, i, n))
//   A(r, s, i) = a[a_rows[r] + a_segments[s] + i * a_step]
//   B(s, i, n) = b[b_segments[s] + i * b_step + n]
//   C[r, n]    = c[c_rows[r] + n]
//
// The sum is one chain of fused multiply-adds in ascending (s, i), for any rows, columns and
// instruction set. C may therefore be computed in any pieces, by any number of threads, to the same
// bits. With segments one gemm walks through the window of a convolution or through chosen samples.
// A null table means that the only segment begins at 0.
struct GemmProblem {
  int rows = 0;
  int columns = 0;

  const float* a = nullptr;
  RowPlaces a_rows;
  std::ptrdiff_t a_step = 1;
  const std::ptrdiff_t* a_segments = nullptr;

  const float* b = nullptr;
  std::ptrdiff_t b_step = 0;
  const std::ptrdiff_t* b_segments = nullptr;

  int segments = 1;
  int length = 0;

  float* c = nullptr;
  RowPlaces c_rows;

  GemmStart start = GemmStart::kZero;
  const float* bias = nullptr;  // [columns], for kBias
  GemmFinish finish = GemmFinish::kStore;

  // Hints that change no result: B is large and not in cache; C is large and written once. The
  // hardware cannot predict the access pattern of either.
  bool prefetch_b = false;
  bool prefetch_c = false;
};

// Runs on the calling thread; allocates nothing.
void Gemm(const GemmProblem& problem);

}  // namespace uper::cpu
