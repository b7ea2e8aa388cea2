#include "uper/nn/cpu/kernels/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "uper/nn/cpu/kernels/dot_gemm.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <utility>

#include "uper/base/arithmetic.h"
#include "uper/nn/cpu/kernels/dot_gemm.h"
#include "uper/nn/cpu/kernels/simd_inl.h"

HWY_BEFORE_NAMESPACE();
namespace uper::cpu {
namespace HWY_NAMESPACE {

// Columns of B, and groups of 16 terms, that stay in registers while the rows of A pass.
#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86  // 32 registers
inline constexpr int kHeldColumns = 5;
inline constexpr int kHeldGroups = 4;
#else
inline constexpr int kHeldColumns = 2;
inline constexpr int kHeldGroups = 2;
#endif

// The block of C whose partial sums lie in the first-level cache at one time.
inline constexpr int kDotRows = 32;
inline constexpr int kDotColumns = 8;
struct DotSums {
  explicit DotSums(int rows, int columns) : row(columns * kPartialSums) {
    std::fill_n(values, rows * row, 0.0F);
  }
  float* At(int r, int column) { return values + r * row + column * kPartialSums; }

  const int row;  // from one row to the next
  HWY_ALIGN float values[kDotRows * kDotColumns * kPartialSums];
};

// Some terms of one segment, for all rows of the block and a few columns.
struct DotPass {
  const float* a;  // of the first row of the block
  std::ptrdiff_t a_row_stride;
  std::ptrdiff_t next;  // from here to the data that is read after this pass
  int rows;
  const float* b[kHeldColumns];
  float* sums[kHeldColumns];  // of the first row of the block
  std::ptrdiff_t sums_row_stride;
  int lanes;  // of the last group of terms
};

// N columns, G groups of terms.
template <int N, int G>
void AddDots(const DotPass& pass) {
  MaskVec masks[kPartialVectors];
  for (int v = 0; v < kPartialVectors; ++v) {
    masks[v] = FirstLanes(std::clamp(pass.lanes - v * kLanes, 0, kLanes));
  }
  const auto load = [&](const float* from, int g, int v) HWY_ATTR {
    from += g * kPartialSums + v * kLanes;
    return g + 1 < G ? LoadVec(from) : LoadMasked(masks[v], from);
  };
  Vec b[N][G][kPartialVectors];
  float* sums[N];
#pragma GCC unroll 8
  for (int n = 0; n < N; ++n) {
    sums[n] = pass.sums[n];
#pragma GCC unroll 4
    for (int g = 0; g < G; ++g) {
#pragma GCC unroll 4
      for (int v = 0; v < kPartialVectors; ++v) b[n][g][v] = load(pass.b[n], g, v);
    }
  }
  const float* a = pass.a;
  const std::ptrdiff_t a_row_stride = pass.a_row_stride;
  const std::ptrdiff_t sums_row_stride = pass.sums_row_stride;
  const std::ptrdiff_t next = pass.next;
  std::ptrdiff_t at = 0;  // of the sums of the row
  for (int row = pass.rows; row > 0; --row) {
#pragma GCC unroll 4
    for (int v = 0; v < kPartialVectors; ++v) {
      Vec sum[N];
#pragma GCC unroll 8
      for (int n = 0; n < N; ++n) sum[n] = LoadVec(sums[n] + at + v * kLanes);
#pragma GCC unroll 4
      for (int g = 0; g < G; ++g) {
        const Vec x = Held(load(a, g, v));
        __builtin_prefetch(a + next + g * kPartialSums + v * kLanes, 0, 2);
#pragma GCC unroll 8
        for (int n = 0; n < N; ++n) sum[n] = Fused(x, b[n][g][v], sum[n]);
      }
#pragma GCC unroll 8
      for (int n = 0; n < N; ++n) StoreVec(sum[n], sums[n] + at + v * kLanes);
    }
    a += a_row_stride;
    at += sums_row_stride;
  }
}

using AddDotsFunction = void (*)(const DotPass&);

template <int... I>  // G - 1 + (N - 1) * kHeldGroups
constexpr auto AddDotsTable(std::integer_sequence<int, I...>) {
  return std::array<AddDotsFunction, sizeof...(I)>{
      &AddDots<I / kHeldGroups + 1, I % kHeldGroups + 1>...};
}

inline constexpr auto kAddDots =
    AddDotsTable(std::make_integer_sequence<int, kHeldColumns * kHeldGroups>());

// One segment for the columns in `active` (numbers within the block), in pieces of nearly equal
// size.
void AddDotSegment(const DotProblem& p, int row, int rows, int column, int segment,
                   const int* active, int count, DotSums& sums) {
  const float* a = p.a + row * p.a_row_stride + p.a_segments[segment];
  DotPass pass{.a_row_stride = p.a_row_stride, .rows = rows, .sums_row_stride = sums.row};
  const bool last = segment + 1 == p.segments;
  pass.next = last ? rows * p.a_row_stride - p.a_segments[segment] + p.a_segments[0]
                   : p.a_segments[segment + 1] - p.a_segments[segment];
  int groups = CeilDiv(p.length, kPartialSums);
  int first = 0;  // term
  for (int pieces = CeilDiv(groups, kHeldGroups); pieces > 0; --pieces) {
    const int depth = CeilDiv(groups, pieces);
    pass.a = a + first;
    pass.lanes = std::min(kPartialSums, p.length - first - (depth - 1) * kPartialSums);
    int done = 0;
    for (int parts = CeilDiv(count, kHeldColumns); parts > 0; --parts) {
      const int width = CeilDiv(count - done, parts);
      for (int n = 0; n < width; ++n) {
        const int place = active[done + n];
        pass.b[n] = p.b + p.b_columns[column + place] + p.b_segments[segment] + first;
        pass.sums[n] = sums.At(0, place);
      }
      kAddDots[(width - 1) * kHeldGroups + depth - 1](pass);
      done += width;
    }
    groups -= depth;
    first += depth * kPartialSums;
  }
}

void DotBlock(const DotProblem& p, int row, int rows, int column, int columns) {
  DotSums sums(rows, columns);
  for (int segment = 0; segment < p.segments; ++segment) {
    int active[kDotColumns];
    int count = 0;
    for (int n = 0; n < columns; ++n) {
      if (p.active[p.active_columns[column + n] + segment] != 0) active[count++] = n;
    }
    AddDotSegment(p, row, rows, column, segment, active, count, sums);
  }
  for (int n = 0; n < columns; ++n) {
    float* c = p.c + p.c_columns[column + n] + row;
    int r = 0;
    for (; r + 4 <= rows; r += 4) SumsOfFour(sums.At(r, n), sums.row, c + r);
    for (; r < rows; ++r) c[r] = SumOfPartials(sums.At(r, n));
  }
}

void DotGemmImpl(const DotProblem& p) {
  int column = 0;
  for (int blocks = CeilDiv(p.columns, kDotColumns); blocks > 0; --blocks) {
    const int columns = CeilDiv(p.columns - column, blocks);
    for (int row = 0; row < p.rows; row += kDotRows) {
      DotBlock(p, row, std::min(kDotRows, p.rows - row), column, columns);
    }
    column += columns;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace uper::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace uper::cpu {

HWY_EXPORT(DotGemmImpl);

void DotGemm(const DotProblem& problem) { HWY_DYNAMIC_DISPATCH(DotGemmImpl)(problem); }

}  // namespace uper::cpu
#endif  // HWY_ONCE
