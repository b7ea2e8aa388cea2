#include "uper/nn/cpu/kernels/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "uper/nn/cpu/kernels/gemm.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <utility>

#include "uper/base/arithmetic.h"
#include "uper/nn/cpu/kernels/gemm.h"
#include "uper/nn/cpu/kernels/simd_inl.h"

HWY_BEFORE_NAMESPACE();
namespace uper::cpu {
namespace HWY_NAMESPACE {

// The largest tile of C that fits the registers together with one row of B and one entry of A.
// kMaxRows: its rows; kWidths: its vectors of columns by the number of rows.
#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86  // 32 registers
inline constexpr int kMaxRows = 8;
inline constexpr int kWidths[kMaxRows + 1] = {0, 4, 4, 4, 4, 4, 4, 3, 3};
#elif HWY_ARCH_ARM_A64
inline constexpr int kMaxRows = 6;
inline constexpr int kWidths[kMaxRows + 1] = {0, 4, 4, 4, 4, 4, 4};
#else  // 16 registers
inline constexpr int kMaxRows = 6;
inline constexpr int kWidths[kMaxRows + 1] = {0, 4, 4, 3, 3, 2, 2};
#endif
inline constexpr int kMaxWidth = 4;

// kRowBlock rows of C share a pass over kDepth rows of B. Those rows of B should stay in the
// second-level cache.
inline constexpr int kRowBlock = 64;
inline constexpr int kDepth = 128;

// The place of one tile in the problem.
struct TilePlace {
  int row;
  int column;
  int first;  // range [first, first + depth) of the length, with one segment
  int depth;
  GemmStart start;
  GemmFinish finish;
  int lanes;  // of the last vector of columns; kLanes unless masked
};

// Vector w of the W vectors of a row. With kMasked the last one is partial.
template <int W, bool kMasked>
HWY_INLINE Vec LoadTile(MaskVec mask, const float* from, int w) {
  from += w * kLanes;
  return kMasked && w + 1 == W ? LoadMasked(mask, from) : LoadVec(from);
}

template <int W, bool kMasked>
HWY_INLINE void StoreTile(Vec value, MaskVec mask, float* to, int w) {
  to += w * kLanes;
  if (kMasked && w + 1 == W) {
    StoreMasked(value, mask, to);
  } else {
    StoreVec(value, to);
  }
}

// The initial values of the sums.
template <int R, int W, bool kMasked>
HWY_INLINE void StartTile(const GemmProblem& p, const TilePlace& place, MaskVec mask,
                          float* const (&c)[R], Vec (&sums)[R][W]) {
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int w = 0; w < W; ++w) {
      if (place.start == GemmStart::kZero) {
        sums[r][w] = Zero();
      } else if (place.start == GemmStart::kBias) {
        sums[r][w] = LoadTile<W, kMasked>(mask, p.bias + place.column, w);
      } else {
        sums[r][w] = LoadTile<W, kMasked>(mask, c[r], w);
      }
    }
  }
}

template <int R, int W, bool kMasked>
HWY_INLINE void FinishTile(const TilePlace& place, MaskVec mask, float* const (&c)[R],
                           Vec (&sums)[R][W]) {
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int w = 0; w < W; ++w) {
      Vec value = sums[r][w];
      if (place.finish == GemmFinish::kStoreRelu) value = Relu(value);
      if (place.finish == GemmFinish::kAdd) {
        value = hn::Add(LoadTile<W, kMasked>(mask, c[r], w), value);
      }
      StoreTile<W, kMasked>(value, mask, c[r], w);
    }
  }
}

// Adds up one segment. With kPrefetch it prefetches the rows of B that lie kDepth rows further.
template <int R, int W, bool kMasked, bool kPrefetch>
HWY_INLINE void AddSegment(const GemmProblem& p, int depth, MaskVec mask,
                           const float* const (&a)[R], std::ptrdiff_t at, const float* b,
                           Vec (&sums)[R][W]) {
  const std::ptrdiff_t a_step = p.a_step;
  const std::ptrdiff_t b_step = p.b_step;
  for (int i = depth; i > 0; --i) {
    Vec row[W];
#pragma GCC unroll 4
    for (int w = 0; w < W; ++w) {
      row[w] = LoadTile<W, kMasked>(mask, b, w);
      if constexpr (kPrefetch) __builtin_prefetch(b + kDepth * b_step + w * kLanes, 0, 2);
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const Vec factor = Broadcast(a[r][at]);
#pragma GCC unroll 4
      for (int w = 0; w < W; ++w) sums[r][w] = Fused(factor, row[w], sums[r][w]);
    }
    at += a_step;
    b += b_step;
  }
}

// Prefetches the tile of C that lies one row block further down.
template <int R, int W>
HWY_INLINE void PrefetchResult(const GemmProblem& p, const TilePlace& place) {
  for (int r = 0; r < R; ++r) {
    const int row = place.row + r + kRowBlock;
    if (row >= p.rows) return;
    const float* c = p.c + p.c_rows[row] + place.column;
    for (int w = 0; w < W; ++w) __builtin_prefetch(c + w * kLanes, 1, 2);
  }
}

// A tile of R rows and W vectors of columns of C, in registers for the whole sum.
template <int R, int W, bool kMasked>
void Tile(const GemmProblem& p, const TilePlace& place) {
  const float* a[R];
  float* c[R];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
    a[r] = p.a + p.a_rows[place.row + r] + place.first * p.a_step;
    c[r] = p.c + p.c_rows[place.row + r] + place.column;
  }
  const MaskVec mask = FirstLanes(place.lanes);
  Vec sums[R][W];
  StartTile<R, W, kMasked>(p, place, mask, c, sums);
  const float* b_base = p.b + place.column + place.first * p.b_step;
  if (p.prefetch_c) PrefetchResult<R, W>(p, place);
  for (int s = 0; s < p.segments; ++s) {
    const std::ptrdiff_t at = p.a_segments ? p.a_segments[s] : 0;
    const float* b = b_base + (p.b_segments ? p.b_segments[s] : 0);
    if (p.prefetch_b) {
      AddSegment<R, W, kMasked, true>(p, place.depth, mask, a, at, b, sums);
    } else {
      AddSegment<R, W, kMasked, false>(p, place.depth, mask, a, at, b, sums);
    }
  }
  FinishTile<R, W, kMasked>(place, mask, c, sums);
}

using TileFunction = void (*)(const GemmProblem&, const TilePlace&);

// The function for a tile of R rows and W vectors; null if the registers cannot hold that many.
template <int R, int W, bool kMasked>
constexpr TileFunction TileOf() {
  if constexpr (R > 0 && W <= kWidths[R]) {
    return &Tile<R, W, kMasked>;
  } else {
    return nullptr;
  }
}

template <bool kMasked, int... R>
constexpr std::array<std::array<TileFunction, sizeof...(R)>, kMaxWidth + 1> TileTable(
    std::integer_sequence<int, R...>) {
  std::array<std::array<TileFunction, sizeof...(R)>, kMaxWidth + 1> table{};
  ((table[1][R] = TileOf<R, 1, kMasked>()), ...);
  ((table[2][R] = TileOf<R, 2, kMasked>()), ...);
  ((table[3][R] = TileOf<R, 3, kMasked>()), ...);
  ((table[4][R] = TileOf<R, 4, kMasked>()), ...);
  return table;
}

// [width][rows].
inline constexpr auto kWholeTiles =
    TileTable<false>(std::make_integer_sequence<int, kMaxRows + 1>());
inline constexpr auto kMaskedTiles =
    TileTable<true>(std::make_integer_sequence<int, kMaxRows + 1>());

// All rows of a row block and one strip of columns, in tiles of nearly equal height.
void Strip(const GemmProblem& p, TilePlace place, int rows, int width) {
  const int tiles = CeilDiv(rows, kMaxRows);
  const int end = place.row + rows;
  const auto& tiles_of_width = (place.lanes < kLanes ? kMaskedTiles : kWholeTiles)[width];
  for (int t = tiles; t > 0; --t) {
    const int height = CeilDiv(end - place.row, t);
    tiles_of_width[height](p, place);
    place.row += height;
  }
}

// Rows [row, row + rows) of C and all columns, for one range of the length.
void RowBlock(const GemmProblem& p, TilePlace place, int rows) {
  const int tallest = std::min(rows, kMaxRows);
  const int tiles = CeilDiv(rows, tallest);
  const int widest = kWidths[CeilDiv(rows, tiles)];
  place.column = 0;
  int vectors = CeilDiv(p.columns, kLanes);
  for (int strips = CeilDiv(vectors, widest); strips > 0; --strips) {
    const int width = CeilDiv(vectors, strips);
    vectors -= width;
    const int last = place.column + (width - 1) * kLanes;  // the last vector of the strip
    place.lanes = std::min(kLanes, p.columns - last);
    Strip(p, place, rows, width);
    place.column += width * kLanes;
  }
}

void GemmImpl(const GemmProblem& p) {
  // Only sums of one segment are cut. A sum that is added to C at the end is not cut, because C
  // could not hold the sum so far.
  const bool cut = p.segments == 1 && p.finish != GemmFinish::kAdd;
  const int depth = cut ? kDepth : std::max(1, p.length);
  int first = 0;
  do {
    const bool last = first + depth >= p.length;
    TilePlace place{.row = 0, .column = 0, .first = first};
    place.depth = std::min(depth, p.length - first);
    place.start = first == 0 ? p.start : GemmStart::kResult;
    place.finish = last ? p.finish : GemmFinish::kStore;
    for (int row = 0; row < p.rows; row += kRowBlock) {
      place.row = row;
      RowBlock(p, place, std::min(kRowBlock, p.rows - row));
    }
    first += depth;
  } while (first < p.length);
}

}  // namespace HWY_NAMESPACE
}  // namespace uper::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace uper::cpu {

HWY_EXPORT(GemmImpl);

void Gemm(const GemmProblem& problem) { HWY_DYNAMIC_DISPATCH(GemmImpl)(problem); }

}  // namespace uper::cpu
#endif  // HWY_ONCE
