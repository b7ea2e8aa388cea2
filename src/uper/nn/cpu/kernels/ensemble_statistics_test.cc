#include "uper/nn/cpu/kernels/ensemble_statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "uper/base/error.h"
#include "uper/nn/cpu/kernels/simd_info.h"
#include "uper/nn/learner_data_for_tests.h"

namespace uper::cpu {
namespace {

constexpr EnsembleShape kShapes[] = {{1, 1}, {1, 7}, {2, 8}, {3, 9}, {10, 51}, {4, 201}, {64, 3}};
constexpr double kReward = 0.3;
constexpr double kDiscount = 0.9;

Uncertainty FastQuantiles(const std::vector<float>& theta, const std::vector<float>& target,
                          EnsembleShape shape) {
  std::vector<double> theta_means(shape.members), target_means(shape.members);
  std::vector<double> columns(shape.quantiles);
  QuantileMeans(theta, shape, theta_means);
  QuantileMeans(target, shape, target_means);
  return DecomposeTargetQuantilesSimd(theta, target, shape, kReward, kDiscount, theta_means,
                                      target_means, columns);
}

Uncertainty FastScalar(const std::vector<float>& theta, EnsembleShape shape) {
  std::vector<double> columns(shape.quantiles);
  return DecomposeScalarTargetSimd(theta, shape, 1.5, columns);
}

std::vector<double> Fields(const Uncertainty& u) {
  return {u.mean,  u.epistemic,  u.aleatoric, u.target_distance_sq, u.epistemic_delta,
          u.total, u.total_delta};
}

std::vector<float> Outputs(EnsembleShape shape, const std::string& name, float offset) {
  auto values = RandomFloats(shape.members * shape.quantiles, name);
  for (float& value : values) value += offset;
  return values;
}

TEST(EnsembleStatisticsTest, AgreeWithTheReference) {
  for (const EnsembleShape shape : kShapes) {
    for (const float offset : {0.0F, 1000.0F}) {
      const auto theta = Outputs(shape, "theta", offset);
      const auto target = Outputs(shape, "target", -offset);
      const auto expect_equal = [&](const Uncertainty& fast, const Uncertainty& reference) {
        const auto a = Fields(fast), b = Fields(reference);
        for (std::size_t i = 0; i < a.size(); ++i) {
          EXPECT_NEAR(a[i], b[i], 1e-10 * std::abs(b[i])) << shape.members << " " << i;
        }
      };
      expect_equal(FastQuantiles(theta, target, shape),
                   DecomposeTargetQuantiles<float>(theta, target, shape, kReward, kDiscount));
      expect_equal(FastScalar(theta, shape), DecomposeScalarTarget<float>(theta, shape, 1.5));
    }
  }
}

TEST(EnsembleStatisticsTest, EqualMembersOrQuantilesHaveNoSpread) {
  const EnsembleShape shape{.members = 10, .quantiles = 51};
  std::vector<float> equal_members, equal_quantiles;
  const auto row = RandomFloats(shape.quantiles, "row");
  for (std::size_t i = 0; i < shape.members * shape.quantiles; ++i) {
    equal_members.push_back(row[i % shape.quantiles]);
    equal_quantiles.push_back(row[i / shape.quantiles]);
  }
  EXPECT_EQ(FastScalar(equal_members, shape).epistemic, 0);
  EXPECT_GT(FastScalar(equal_members, shape).aleatoric, 0);
  EXPECT_EQ(FastScalar(equal_quantiles, shape).aleatoric, 0);
  EXPECT_GT(FastScalar(equal_quantiles, shape).epistemic, 0);
  // Targets without spread, and members that differ only by an offset: only the gaps remain.
  const Uncertainty offsets = FastQuantiles(equal_quantiles, equal_quantiles, shape);
  double gap_squares = 0;
  for (std::size_t k = 0; k < shape.members; ++k) {
    const double gap = kReward + (kDiscount - 1) * double{row[k]};
    gap_squares += gap * gap / 10;
  }
  EXPECT_NEAR(offsets.epistemic_delta, gap_squares, 1e-14);
}

TEST(EnsembleStatisticsTest, SameBitsOnEveryInstructionSet) {
  for (const EnsembleShape shape : kShapes) {
    const auto theta = Outputs(shape, "theta", 3);
    const auto target = Outputs(shape, "target", -2);
    const auto quantiles = Fields(FastQuantiles(theta, target, shape));
    const auto scalar = Fields(FastScalar(theta, shape));
    for (const std::int64_t simd : RunnableSimdTargets()) {
      UseSimdTarget(simd);
      EXPECT_EQ(Fields(FastQuantiles(theta, target, shape)), quantiles) << SimdTargetName();
      EXPECT_EQ(Fields(FastScalar(theta, shape)), scalar) << SimdTargetName();
    }
    UseSimdTarget(0);
  }
}

TEST(EnsembleStatisticsTest, ShapesAreChecked) {
  const std::vector<float> theta(6);
  std::vector<double> columns(3), means(2);
  const EnsembleShape shape{.members = 2, .quantiles = 3};
  EXPECT_THROW(DecomposeScalarTargetSimd(std::span(theta).first(5), shape, 0, columns), Error);
  EXPECT_THROW(DecomposeScalarTargetSimd(theta, shape, 0, means), Error);
  EXPECT_THROW(QuantileMeans(theta, shape, columns), Error);
  EXPECT_THROW(DecomposeTargetQuantilesSimd(theta, std::span(theta).first(3), shape, 0, 1, means,
                                            means, columns),
               Error);
}

}  // namespace
}  // namespace uper::cpu
