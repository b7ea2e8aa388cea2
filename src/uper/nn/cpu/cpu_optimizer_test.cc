#include "uper/nn/cpu/cpu_optimizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "uper/base/error.h"
#include "uper/nn/cpu/kernels/simd_info.h"
#include "uper/nn/learner_data_for_tests.h"

namespace uper::cpu {
namespace {

// Parameters, gradient and state of some size, and spans of them.
struct State {
  explicit State(std::size_t size)
      : p(RandomFloats(size, "p")), g(RandomFloats(size, "g")), m(size), v(size) {}

  OptimizerBuffers buffers() { return {p, g, m, v}; }

  std::vector<float> p, g, m, v;
};

TEST(AdamTest, TwoStepsByHand) {
  State s(1);
  s.p = {1};
  s.g = {0.5F};
  const AdamOptions options{.learning_rate = 0.1,
                            .first_moment_decay = 0.9,
                            .second_moment_decay = 0.99,
                            .epsilon = 0.25};
  OptimizerUpdate(options, 1, 1).Apply(s.buffers());
  // m = 0.05, v = 0.0025, mhat = 0.5, vhat = 0.25: 1 - 0.1 * 0.5 / (0.5 + 0.25).
  EXPECT_NEAR(s.m[0], 0.05, 1e-8);
  EXPECT_NEAR(s.v[0], 0.0025, 1e-9);
  EXPECT_NEAR(s.p[0], 1 - 0.1 * 0.5 / 0.75, 1e-7);
  s.g = {-2};
  OptimizerUpdate(options, 2, 0.5).Apply(s.buffers());  // a gradient of -1 after the clip
  // m = 0.045 - 0.1 = -0.055, v = 0.002475 + 0.01 = 0.012475.
  const double mhat = -0.055 / (1 - 0.81);
  const double vhat = 0.012475 / (1 - 0.9801);
  EXPECT_NEAR(s.p[0], 1 - 0.1 * 0.5 / 0.75 - 0.1 * mhat / (std::sqrt(vhat) + 0.25), 1e-6);
}

TEST(RmsPropTest, EpsilonInsideTheRootByHand) {
  State s(1);
  s.p = {1};
  s.g = {1};
  const RmsPropOptions options{.learning_rate = 0.1, .decay = 0.75, .epsilon = 0.0625};
  OptimizerUpdate(options, 1).Apply(s.buffers());
  // m = 0.25, v = 0.25, variance 0.1875, + 0.0625 = 0.25: 1 - 0.1 / 0.5.
  EXPECT_FLOAT_EQ(s.m[0], 0.25F);
  EXPECT_FLOAT_EQ(s.v[0], 0.25F);
  EXPECT_FLOAT_EQ(s.p[0], 0.8F);
}

TEST(RmsPropTest, EpsilonOutsideTheRootByHand) {
  State s(1);
  s.p = {1};
  s.g = {4};
  const RmsPropOptions options{.learning_rate = 0.1,
                               .decay = 0.5,
                               .epsilon = 0.25,
                               .epsilon_placement = EpsilonPlacement::kOutsideRoot};
  OptimizerUpdate(options, 0.25).Apply(s.buffers());
  // g = 1, m = 0.5, v = 0.5, variance 0.25, root 0.5, + 0.25: 1 - 0.1 / 0.75.
  EXPECT_FLOAT_EQ(s.m[0], 0.5F);
  EXPECT_FLOAT_EQ(s.p[0], 1 - 0.1F / 0.75F);
}

TEST(RmsPropTest, NegativeVarianceFromRoundingCountsAsZero) {
  State s(1);
  s.p = {0};
  s.g = {1};
  s.m = {1};
  s.v = {0.5F};  // v - m^2 = -0.45 after the update
  const RmsPropOptions options{.learning_rate = 0.1, .decay = 0.9, .epsilon = 0.0001};
  OptimizerUpdate(options, 1).Apply(s.buffers());
  EXPECT_NEAR(s.p[0], -0.1 / 0.01, 1e-4);
}

// Several updates, for every size and instruction set, in one or several pieces: always the same
// bits.
void ExpectSameBits(const std::function<OptimizerUpdate(int)>& update) {
  for (const std::size_t size : {1, 15, 16, 1000, 70001}) {
    std::vector<float> first;
    for (const std::int64_t target : RunnableSimdTargets()) {
      UseSimdTarget(target);
      for (const std::size_t piece : {size, size / 3 + 1}) {
        State s(size);
        for (int t = 1; t <= 3; ++t) {
          for (std::size_t begin = 0; begin < size; begin += piece) {
            const std::size_t count = std::min(piece, size - begin);
            const auto part = [&](std::vector<float>& all) {
              return std::span(all).subspan(begin, count);
            };
            update(t).Apply({part(s.p), part(s.g), part(s.m), part(s.v)});
          }
          std::ranges::rotate(s.g, s.g.begin() + size / 3);
        }
        std::vector<float> all = s.p;
        all.insert(all.end(), s.m.begin(), s.m.end());
        all.insert(all.end(), s.v.begin(), s.v.end());
        if (first.empty()) first = all;
        EXPECT_TRUE(SameBits(all, first)) << SimdTargetName() << ", " << piece << ", " << size;
      }
    }
  }
  UseSimdTarget(0);
}

TEST(OptimizerUpdateTest, SameBitsForAnyPiecesAndInstructionSet) {
  ExpectSameBits([](int t) { return OptimizerUpdate(AdamOptions{}, t, 0.7); });
  for (const auto place : {EpsilonPlacement::kInsideRoot, EpsilonPlacement::kOutsideRoot}) {
    ExpectSameBits(
        [place](int) { return OptimizerUpdate(RmsPropOptions{.epsilon_placement = place}, 0.7); });
  }
}

// Compares an update that computes its gradient on the way with the same update from a stored
// gradient.
void ExpectComputedAsStored(const OptimizerUpdate& update, int rows, int columns, int terms) {
  const int stride = columns + OuterProducts::kLeastColumns;
  const auto row_factors = RandomFloats(terms * rows, "rows");
  auto column_factors = RandomFloats(terms * stride, "columns");
  std::vector<const float*> rows_of, columns_of;
  for (int i = 0; i < terms; ++i) {
    rows_of.push_back(&row_factors[i * rows]);
    columns_of.push_back(&column_factors[i * stride]);
    std::copy_n(&column_factors[i * stride], OuterProducts::kLeastColumns,
                &column_factors[i * stride + columns]);
  }
  State stored(rows * columns);
  for (int r = 0; r < rows; ++r) {
    for (int c = 0; c < columns; ++c) {
      float& g = stored.g[r * columns + c] = 0;
      for (int i = 0; i < terms; ++i) g = std::fma(rows_of[i][r], columns_of[i][c], g);
    }
  }
  update.Apply(stored.buffers());
  State computed(rows * columns);
  update.Apply(computed.buffers(), {rows, columns, rows_of, columns_of});
  EXPECT_TRUE(SameBits(computed.p, stored.p) && SameBits(computed.m, stored.m) &&
              SameBits(computed.v, stored.v))
      << SimdTargetName() << ", " << rows << " x " << columns << ", " << terms << " terms";
}

TEST(OptimizerUpdateTest, AComputedGradientGivesTheBitsOfAStoredOne) {
  for (const std::int64_t target : RunnableSimdTargets()) {
    UseSimdTarget(target);
    for (const int terms : {0, 1, 2, 3, 4, 5, 6, 9}) {
      for (const int columns : {16, 17, 51, 64}) {
        for (const int rows : {1, 5, 16}) {
          ExpectComputedAsStored(OptimizerUpdate(AdamOptions{}, 3, 0.7), rows, columns, terms);
          ExpectComputedAsStored(OptimizerUpdate(RmsPropOptions{}, 0.7), rows, columns, terms);
        }
      }
    }
  }
  UseSimdTarget(0);
}

TEST(AdamTest, EveryEntryAgreesWithDoubles) {
  State s(40001);
  const auto p0 = s.p;
  const AdamOptions options{.learning_rate = 1e-3, .epsilon = 1e-5};
  OptimizerUpdate(options, 1, 1).Apply(s.buffers());
  for (std::size_t i = 0; i < p0.size(); ++i) {
    const double g = s.g[i];
    ASSERT_NEAR(s.p[i], double{p0[i]} - 1e-3 * g / (std::abs(g) + 1e-5), 1e-6) << i;
  }
}

TEST(SumOfSquaresTest, ExactEnoughAndFixed) {
  for (const std::size_t size : {1, 17, 5000, 70003}) {
    auto g = RandomFloats(size, "g");
    // Partial sums of different sizes, so that their total depends on the order.
    for (std::size_t i = 0; i < size; ++i) g[i] *= std::exp2(static_cast<float>(i / 900 % 23));
    double squares = 0;
    for (const float value : g) squares += double{value} * double{value};
    const double first = SumOfSquares(g);
    EXPECT_NEAR(first, squares, 1e-12 * squares);
    for (const std::int64_t target : RunnableSimdTargets()) {
      UseSimdTarget(target);
      EXPECT_EQ(SumOfSquares(g), first) << SimdTargetName();
    }
    UseSimdTarget(0);
  }
  const std::vector<float> poisoned{1, std::numeric_limits<float>::quiet_NaN()};
  EXPECT_TRUE(std::isnan(SumOfSquares(poisoned)));
}

TEST(ConcurrentOptimizerTest, CopyCopies) {
  ThreadPool pool(3);
  const auto from = RandomFloats(50001, "from");
  std::vector<float> to(from.size());
  CopyParameters(from, to, pool);
  EXPECT_EQ(from, to);
}

TEST(OptimizerContractTest, SizesAndStepsAreChecked) {
  ThreadPool pool(1);
  State s(3);
  EXPECT_THROW(OptimizerUpdate(AdamOptions{}, 0, 1), Error);
  s.m.pop_back();
  EXPECT_THROW(OptimizerUpdate(AdamOptions{}, 1, 1).Apply(s.buffers()), Error);
  EXPECT_THROW(OptimizerUpdate(RmsPropOptions{}, 1).Apply(s.buffers()), Error);
  EXPECT_THROW(CopyParameters(s.p, s.m, pool), Error);
}

}  // namespace
}  // namespace uper::cpu
