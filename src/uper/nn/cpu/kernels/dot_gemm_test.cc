#include "uper/nn/cpu/kernels/dot_gemm.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <vector>

#include "uper/nn/cpu/kernels/simd_info.h"
#include "uper/nn/learner_data_for_tests.h"

namespace uper::cpu {
namespace {

// One entry as the header of DotGemm defines it.
float ExpectedDot(const DotProblem& p, int row, int column) {
  std::array<float, 16> s{};
  for (int segment = 0; segment < p.segments; ++segment) {
    if (p.active[p.active_columns[column] + segment] == 0) continue;
    for (int i = 0; i < p.length; ++i) {
      const float a = p.a[row * p.a_row_stride + p.a_segments[segment] + i];
      const float b = p.b[p.b_columns[column] + p.b_segments[segment] + i];
      s[i % 16] = std::fma(a, b, s[i % 16]);
    }
  }
  std::array<float, 4> t{};
  for (int i = 0; i < 4; ++i) t[i] = (s[i] + s[i + 8]) + (s[i + 4] + s[i + 12]);
  return (t[0] + t[2]) + (t[1] + t[3]);
}

// Inactive segments are not zero here, so that the test notices if one is added.
TEST(DotGemmTest, SixteenPartialSumsOnEveryInstructionSet) {
  using Offsets = std::vector<std::ptrdiff_t>;
  const Offsets a_segments{0, 9000}, b_segments{210, 0};
  const Offsets b_columns{0, 500, 1000, 1500, 2000, 2500, 3000, 3500, 4000, 4500, 5000};
  const Offsets c_columns{120, 0, 40, 80, 160, 200, 240, 280, 320, 360, 400};
  const Offsets active_columns{0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20};
  std::vector<char> active(22, 1);
  for (const int left_out : {0, 5, 6, 7, 13, 20}) active[left_out] = 0;
  const auto a = RandomFloats(18000, "a");
  const auto b = RandomFloats(6000, "b");
  for (const std::int64_t target : RunnableSimdTargets()) {
    UseSimdTarget(target);
    for (const int length : {1, 3, 16, 17, 51, 201}) {
      for (const int columns : {0, 1, 2, 3, 4, 5, 6, 11}) {
        for (const int rows : {1, 4, 7, 38}) {
          std::vector<float> c(440);
          const DotProblem p{.rows = rows,
                             .columns = columns,
                             .a = a.data(),
                             .a_row_stride = length,
                             .a_segments = a_segments.data(),
                             .b = b.data(),
                             .b_columns = b_columns.data(),
                             .b_segments = b_segments.data(),
                             .active = active.data(),
                             .active_columns = active_columns.data(),
                             .segments = 2,
                             .length = length,
                             .c = c.data(),
                             .c_columns = c_columns.data()};
          std::vector<float> expected(440);
          for (int n = 0; n < columns; ++n) {
            for (int r = 0; r < rows; ++r) expected[c_columns[n] + r] = ExpectedDot(p, r, n);
          }
          DotGemm(p);
          EXPECT_TRUE(SameBits(c, expected))
              << SimdTargetName() << ", " << rows << " x " << columns << " x " << length;
        }
      }
    }
  }
  UseSimdTarget(0);
}

}  // namespace
}  // namespace uper::cpu
