#include "uper/nn/cpu/kernels/sparse_product.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "uper/base/error.h"
#include "uper/nn/cpu/kernels/simd_info.h"
#include "uper/nn/learner_data_for_tests.h"

namespace uper::cpu::sparse_product_test {
namespace {

struct Size {
  int rows, columns, length;
};
constexpr Size kSizes[] = {{1, 1, 1},    {3, 7, 31},     {17, 16, 32},  {5, 33, 33}, {16, 128, 9},
                           {2, 200, 70}, {33, 161, 128}, {18, 20, 150}, {4, 5, 0}};

// A matrix of which about half is zero.
std::vector<float> HalfZero(std::size_t size) {
  auto values = RandomFloats(size, "a");
  for (float& value : values) value = std::max(value, 0.0F);
  return values;
}

// A problem that owns its memory. A lies along its rows or across them.
struct Example {
  Example(Size size, bool across, bool forward)
      : a(HalfZero(std::size_t{1} * size.rows * size.length)),
        b(RandomFloats(std::size_t{1} * size.length * size.columns, "b")),
        bias(RandomFloats(size.columns, "bias")),
        c(std::size_t{1} * size.rows * size.columns, 77) {
    problem = {.rows = size.rows,
               .columns = size.columns,
               .length = size.length,
               .a = a.data(),
               .a_row = across ? 1 : size.length,
               .a_step = across ? size.rows : 1,
               .b = b.data(),
               .b_step = size.columns,
               .c = c.data(),
               .c_row = size.columns,
               .start = forward ? bias.data() : nullptr,
               .relu = forward};
  }

  // One chain of fused multiply-adds, zeros included.
  std::vector<float> Expected() const {
    std::vector<float> expected;
    for (int r = 0; r < problem.rows; ++r) {
      for (int n = 0; n < problem.columns; ++n) {
        float sum = problem.start ? problem.start[n] : 0;
        for (int k = 0; k < problem.length; ++k) {
          const float factor = a[r * problem.a_row + k * problem.a_step];
          sum = std::fma(factor, b[k * problem.b_step + n], sum);
        }
        expected.push_back(problem.relu ? std::max(sum, 0.0F) : sum);
      }
    }
    return expected;
  }

  std::vector<float> a, b, bias, c;
  SparseProblem problem;
};

TEST(SparseProductTest, IsTheDenseChainToTheBitOnEveryInstructionSet) {
  for (const Size size : kSizes) {
    for (const bool across : {false, true}) {
      if (across && size.length == 0) continue;
      for (const bool forward : {false, true}) {
        for (const std::int64_t target : RunnableSimdTargets()) {
          UseSimdTarget(target);
          Example example(size, across, forward);
          SparseProduct(example.problem);
          EXPECT_EQ(example.c, example.Expected())
              << SimdTargetName() << " " << size.rows << " " << size.columns << " " << size.length;
        }
        UseSimdTarget(0);
      }
    }
  }
}

TEST(SparseProductTest, ContinuesTheChainOfAnEarlierProduct) {
  Example whole({5, 40, 90}, false, true);
  Example parts = whole;
  SparseProblem first = whole.problem;
  first.c = parts.c.data();
  first.length = 50;
  first.relu = false;
  SparseProblem rest = whole.problem;
  rest.c = parts.c.data();
  rest.length = 40;
  rest.a += 50;
  rest.b += 50 * rest.b_step;
  rest.start_with_result = true;
  SparseProduct(first);
  SparseProduct(rest);
  EXPECT_EQ(parts.c, whole.Expected());
}

TEST(SparseProductTest, WhatIsNotFiniteInASkipsNothing) {
  for (const bool across : {false, true}) {
    Example example({3, 20, 40}, across, true);
    example.a[example.problem.a_row + 35 * example.problem.a_step] = std::nanf("");  // A(1, 35)
    SparseProduct(example.problem);
    for (int i = 0; i < 60; ++i) EXPECT_EQ(std::isnan(example.c[i]), i / 20 == 1) << i;
  }
}

TEST(SparseProductTest, ZerosAreNotMultiplied) {
  Example example({2, 18, 40}, false, false);
  example.a[5] = 0;
  example.a[40 + 5] = 1;
  std::fill_n(&example.b[5 * 18], 18, std::nanf(""));
  SparseProduct(example.problem);
  for (int i = 0; i < 36; ++i) EXPECT_EQ(std::isnan(example.c[i]), i >= 18) << i;
}

TEST(SparseProductTest, StridesAreChecked) {
  Example example({2, 3, 4}, false, false);
  example.problem.a_row = 8;
  example.problem.a_step = 2;
  EXPECT_THROW(SparseProduct(example.problem), Error);
}

}  // namespace
}  // namespace uper::cpu::sparse_product_test
