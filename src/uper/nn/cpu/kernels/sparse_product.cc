#include "uper/nn/cpu/kernels/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "uper/nn/cpu/kernels/sparse_product.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <bit>
#include <cstdint>

#include "uper/nn/cpu/kernels/simd_inl.h"
#include "uper/nn/cpu/kernels/sparse_product.h"

HWY_BEFORE_NAMESPACE();
namespace uper::cpu {
namespace HWY_NAMESPACE {

// Terms of the sum that are processed together. One bit per term fits a word, and their rows of B
// fit the first-level cache. Rows that lie far apart share few sets of the cache: then half as
// many.
inline constexpr int kTerms = 64;
inline constexpr std::ptrdiff_t kNearRows = 128;
HWY_INLINE int TermsTogether(std::ptrdiff_t b_step) {
  return b_step <= kNearRows ? kTerms : kTerms / 2;
}
inline constexpr int kRows = 16;  // rows whose zeros are found together

// NaN counts as nonzero.
HWY_INLINE MaskVec NotZero(Vec x) { return hn::Not(hn::Eq(x, Zero())); }

// Bit i of the result, i < count, says whether A(row, first + i) != 0. The terms lie along memory.
HWY_INLINE std::uint64_t PlacesAlongRow(const float* a, int count) {
  std::uint64_t places = 0;
  int i = 0;
#if HWY_TARGET != HWY_SCALAR && HWY_MAX_BYTES >= 32
  for (; i + kLanes <= count; i += kLanes) {
    std::uint8_t bits[8] = {};
    hn::StoreMaskBits(Tag(), NotZero(LoadVec(a + i)), bits);
    const std::uint64_t low = static_cast<std::uint64_t>(bits[0] | bits[1] << 8);
    places |= low << i;
  }
#endif
  for (; i < count; ++i) places |= static_cast<std::uint64_t>(a[i] != 0) << i;
  return places;
}

// The same for rows [row, row + rows) of a matrix whose rows lie along memory.
HWY_INLINE void PlacesAcrossRows(const SparseProblem& p, int row, int rows, int first, int count,
                                 std::uint64_t* places) {
  constexpr int kHalf = kTerms / 2;  // the bits of a lane
  const hn::Rebind<std::uint32_t, Tag> words;
  for (int r = 0; r < rows; r += kLanes) {
    const int lanes = std::min(kLanes, rows - r);
    const float* a = p.a + row + r + first * p.a_step;
    HWY_ALIGN std::uint32_t halves[2][kLanes] = {};
    for (int half = 0; half * kHalf < count; ++half) {
      auto bits = hn::Zero(words);
      for (int i = 0; i < std::min(kHalf, count - half * kHalf); ++i, a += p.a_step) {
        const Vec x = lanes == kLanes ? LoadVec(a) : LoadMasked(FirstLanes(lanes), a);
        const auto bit = hn::Set(words, std::uint32_t{1} << i);
        bits = hn::Or(bits, hn::IfThenElseZero(hn::RebindMask(words, NotZero(x)), bit));
      }
      hn::StoreU(bits, words, halves[half]);
    }
    for (int i = 0; i < lanes; ++i) {
      places[r + i] = halves[0][i] | std::uint64_t{halves[1][i]} << kHalf;
    }
  }
}

// W vectors of columns of one row of C, for the terms at `places`, counted from `first`. The last
// vector holds `lanes` columns.
template <int W, bool kMasked>
HWY_INLINE void AddTerms(const SparseProblem& p, int row, int column, int lanes, int first,
                         bool last, std::uint64_t places) {
  const MaskVec mask = FirstLanes(lanes);
  const auto load = [&](const float* from)
                        HWY_ATTR { return kMasked ? LoadMasked(mask, from) : LoadVec(from); };
  float* c = p.c + row * p.c_row + column;
  const bool resume = first > 0 || p.start_with_result;
  const float* start = resume ? c : p.start ? p.start + column : nullptr;
  Vec sums[W];
#pragma GCC unroll 8
  for (int w = 0; w < W; ++w) sums[w] = start ? load(start + w * kLanes) : Zero();
  const float* a = p.a + row * p.a_row + first * p.a_step;
  const float* b = p.b + first * p.b_step + column;
  for (; places != 0; places &= places - 1) {
    const int k = std::countr_zero(places);
    const Vec factor = Broadcast(a[k * p.a_step]);
    const float* b_row = b + k * p.b_step;
#pragma GCC unroll 8
    for (int w = 0; w < W; ++w) sums[w] = Fused(factor, load(b_row + w * kLanes), sums[w]);
  }
#pragma GCC unroll 8
  for (int w = 0; w < W; ++w) {
    const Vec sum = p.relu && last ? Relu(sums[w]) : sums[w];
    if constexpr (kMasked) {
      StoreMasked(sum, mask, c + w * kLanes);
    } else {
      StoreVec(sum, c + w * kLanes);
    }
  }
}

// W vectors of columns and all rows.
template <int W, bool kMasked>
void Columns(const SparseProblem& p, int column, int lanes) {
  const int terms = TermsTogether(p.b_step);
  for (int first = 0; first == 0 || first < p.length; first += terms) {
    const int count = std::min(terms, p.length - first);
    const bool last = first + terms >= p.length;
    for (int row = 0; row < p.rows; row += kRows) {
      const int rows = std::min(kRows, p.rows - row);
      HWY_ALIGN std::uint64_t places[kRows];
      if (p.a_step == 1) {
        for (int r = 0; r < rows; ++r) {
          places[r] = PlacesAlongRow(p.a + (row + r) * p.a_row + first, count);
        }
      } else {
        PlacesAcrossRows(p, row, rows, first, count, places);
      }
      for (int r = 0; r < rows; ++r) {
        AddTerms<W, kMasked>(p, row + r, column, lanes, first, last, places[r]);
      }
    }
  }
}

void SparseProductImpl(const SparseProblem& p) {
  int column = 0;
  for (; column + 8 * kLanes <= p.columns; column += 8 * kLanes)
    Columns<8, false>(p, column, kLanes);
  for (; column + 2 * kLanes <= p.columns; column += 2 * kLanes)
    Columns<2, false>(p, column, kLanes);
  for (; column < p.columns; column += kLanes) {
    Columns<1, true>(p, column, std::min(kLanes, p.columns - column));
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace uper::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "uper/base/check.h"

namespace uper::cpu {

HWY_EXPORT(SparseProductImpl);

void SparseProduct(const SparseProblem& problem) {
  UPER_CHECK(problem.a_row == 1 || problem.a_step == 1, "one index of A must lie along memory");
  HWY_DYNAMIC_DISPATCH(SparseProductImpl)(problem);
}

}  // namespace uper::cpu
#endif  // HWY_ONCE
