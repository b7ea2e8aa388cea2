#include "uper/nn/cpu/kernels/gemm.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <vector>

#include "uper/base/random.h"
#include "uper/nn/cpu/kernels/simd_info.h"
#include "uper/nn/learner_data_for_tests.h"

namespace uper::cpu {
namespace {

using Offsets = std::vector<std::ptrdiff_t>;

// The definition in the header, entry by entry. std::fma rounds once, as the kernels must.
std::vector<float> Expected(const GemmProblem& p, std::vector<float> c) {
  for (int r = 0; r < p.rows; ++r) {
    for (int n = 0; n < p.columns; ++n) {
      float& result = c[p.c_rows[r] + n];
      float sum = 0;
      if (p.start == GemmStart::kBias) sum = p.bias[n];
      if (p.start == GemmStart::kResult) sum = result;
      for (int s = 0; s < p.segments; ++s) {
        for (int i = 0; i < p.length; ++i) {
          const float a = p.a[p.a_rows[r] + (p.a_segments ? p.a_segments[s] : 0) + i * p.a_step];
          const float b = p.b[(p.b_segments ? p.b_segments[s] : 0) + i * p.b_step + n];
          sum = std::fma(a, b, sum);
        }
      }
      if (p.finish == GemmFinish::kStoreRelu && sum < 0) sum = 0;
      result = p.finish == GemmFinish::kAdd ? result + sum : sum;
    }
  }
  return c;
}

// Runs the problem on `c` on every instruction set of this machine.
void ExpectExact(GemmProblem p, const std::vector<float>& c) {
  const std::vector<float> expected = Expected(p, c);
  for (const std::int64_t target : RunnableSimdTargets()) {
    UseSimdTarget(target);
    std::vector<float> result = c;
    p.c = result.data();
    Gemm(p);
    EXPECT_TRUE(SameBits(result, expected))
        << SimdTargetName() << ", " << p.rows << " x " << p.columns << " x " << p.segments << " x "
        << p.length << ", start " << static_cast<int>(p.start) << ", finish "
        << static_cast<int>(p.finish);
  }
  UseSimdTarget(0);
}

constexpr std::array kRows{1, 2, 3, 5, 6, 7, 8, 9, 13, 32, 65};
constexpr std::array kColumns{1, 3, 15, 16, 17, 32, 51, 70};

TEST(GemmTest, RowMajorProductsOfAllSizes) {
  for (const int rows : kRows) {
    for (const int columns : kColumns) {
      for (const int length : {1, 36, 130, 257}) {
        const auto a = RandomFloats(rows * length, "a");
        const auto b = RandomFloats(length * columns, "b");
        const auto bias = RandomFloats(columns, "bias");
        ExpectExact({.rows = rows,
                     .columns = columns,
                     .a = a.data(),
                     .a_rows = {.stride = length},
                     .b = b.data(),
                     .b_step = columns,
                     .length = length,
                     .c_rows = {.stride = columns},
                     .start = GemmStart::kBias,
                     .bias = bias.data(),
                     .finish = GemmFinish::kStoreRelu},
                    RandomFloats(rows * columns, "c"));
      }
    }
  }
}

TEST(GemmTest, EveryStartAndFinishWithTablesAndSegments) {
  const Offsets a_rows{5, 0, 11, 40, 2, 3, 21}, c_rows{100, 0, 300, 200, 600, 500, 400};
  const Offsets a_segments{0, 90, 30}, b_segments{200, 0, 600};
  const auto a = RandomFloats(400, "a");
  const auto b = RandomFloats(1500, "b");
  const auto bias = RandomFloats(60, "bias");
  const auto c = RandomFloats(700, "c");
  for (const int columns : {4, 19, 60}) {
    for (const auto start : {GemmStart::kZero, GemmStart::kBias, GemmStart::kResult}) {
      for (const auto finish : {GemmFinish::kStore, GemmFinish::kStoreRelu, GemmFinish::kAdd}) {
        ExpectExact({.rows = 7,
                     .columns = columns,
                     .a = a.data(),
                     .a_rows = {.offsets = a_rows.data()},
                     .a_step = 13,
                     .a_segments = a_segments.data(),
                     .b = b.data(),
                     .b_step = 61,
                     .b_segments = b_segments.data(),
                     .segments = 3,
                     .length = 6,
                     .c_rows = {.offsets = c_rows.data()},
                     .start = start,
                     .bias = bias.data(),
                     .finish = finish},
                    c);
      }
    }
  }
}

TEST(GemmTest, LongSumsThatAreAddedAtTheEndAreNotCut) {
  const auto a = RandomFloats(3 * 1000, "a");
  const auto b = RandomFloats(1000 * 20, "b");
  for (const auto finish : {GemmFinish::kStore, GemmFinish::kAdd}) {
    ExpectExact({.rows = 3,
                 .columns = 20,
                 .a = a.data(),
                 .a_rows = {.stride = 1},
                 .a_step = 3,
                 .b = b.data(),
                 .b_step = 20,
                 .length = 1000,
                 .c_rows = {.stride = 20},
                 .finish = finish},
                RandomFloats(60, "c"));
  }
}

TEST(GemmTest, NothingBesideTheResultIsWritten) {
  // The columns end within a vector, and rows have a gap: the gap keeps its values.
  const auto a = RandomFloats(9 * 4, "a");
  const auto b = RandomFloats(4 * 23, "b");
  ExpectExact({.rows = 9,
               .columns = 23,
               .a = a.data(),
               .a_rows = {.stride = 4},
               .b = b.data(),
               .b_step = 23,
               .length = 4,
               .c_rows = {.stride = 31}},
              RandomFloats(9 * 31, "c"));
}

TEST(GemmTest, NotANumberPassesThroughRelu) {
  const float nan = std::nanf("");
  const std::vector<float> a(1, 1), b(5, nan);
  std::vector<float> c(5, 0);
  for (const std::int64_t target : RunnableSimdTargets()) {
    UseSimdTarget(target);
    Gemm({.rows = 1,
          .columns = 5,
          .a = a.data(),
          .b = b.data(),
          .length = 1,
          .c = c.data(),
          .finish = GemmFinish::kStoreRelu});
    for (const float value : c) EXPECT_TRUE(std::isnan(value)) << SimdTargetName();
  }
  UseSimdTarget(0);
}

TEST(SimdInfoTest, TargetsCanBeChosen) {
  const std::vector<std::int64_t> targets = RunnableSimdTargets();
  ASSERT_FALSE(targets.empty());
  const std::string best = SimdTargetName();
  UseSimdTarget(targets.back());
  if (targets.size() > 1) {
    EXPECT_NE(SimdTargetName(), best);
  }
  UseSimdTarget(0);
  EXPECT_EQ(SimdTargetName(), best);
}

}  // namespace
}  // namespace uper::cpu
