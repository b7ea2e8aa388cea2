// The functions that a training step calls must not allocate. The test counts every call of
// operator new in this program.

#include <gtest/gtest.h>

#include <vector>

#include "uper/base/replace_new_for_tests.h"
#include "uper/core/categorical.h"
#include "uper/core/ensemble_statistics.h"
#include "uper/core/importance_weights.h"
#include "uper/core/priority.h"
#include "uper/core/quantile.h"
#include "uper/core/uncertainty.h"

namespace uper {
namespace {

TEST(AllocationTest, TheCounterCounts) {
  EXPECT_GE(AllocationsDuring([] { std::vector<int>(100).front() = 1; }), 1u);
}

TEST(AllocationTest, CoreFunctionsAllocateNothing) {
  const std::vector<float> theta(std::size_t{80} * 201, 0.5f);
  const std::vector<float> atoms(51, 1.0f / 51);
  const std::vector<double> probabilities(32, 0.01);
  std::vector<float> weights(32);
  std::vector<float> gradient(201);
  std::vector<float> projected(51);
  QuantileHuberSorter<float> sorter(201);
  const std::span<const float> row(theta.data(), 201);
  EXPECT_EQ(
      AllocationsDuring([&] {
        const Uncertainty u = DecomposeTargetQuantiles<float>(theta, theta, {80, 201}, 1, 0.99);
        ComputePriority(PriorityRule::kInfoGainDelta, {.uncertainty = u}, {});
        DecomposeScalarTarget<float>(theta, {80, 201}, 1);
        sorter.Loss(row, row, 1, gradient);
        ImportanceWeights(probabilities, 1000, 0.4, WeightNormalization::kBatchMax, 0, weights);
        ProjectCategorical<float>({}, atoms, 1, 0.99, projected);
        CategoricalQuantiles<float>({}, atoms, gradient);
        DecomposeCategoricalVariance<float>({}, atoms, 1, 0);
        DecomposeCategoricalProducts<float>({}, atoms, 1, 0);
      }),
      0u);
}

TEST(AllocationTest, EnsembleStatisticsAllocateOneRowForABatch) {
  constexpr EnsembleShape kShape{.members = 10, .quantiles = 51};
  const std::vector<float> theta(4 * kShape.members * kShape.quantiles, 0.5f);
  const auto first = std::span(theta).first(kShape.members * kShape.quantiles);
  const std::vector<double> ones(4, 1);
  std::vector<double> means(kShape.members), columns(kShape.quantiles);
  std::vector<Uncertainty> out(4);
  EXPECT_EQ(AllocationsDuring([&] {
              QuantileMeans<float>(first, kShape, means);
              DecomposeTargetQuantilesSimd<float>(first, first, kShape, 1, 0.99, means, means,
                                                  columns);
              DecomposeScalarTargetSimd<float>(first, kShape, 1, columns);
            }),
            0u);
  EXPECT_EQ(AllocationsDuring([&] {
              DecomposeTargetQuantilesBatch<float>(theta, theta, kShape, ones, ones, out);
            }),
            1u);
  EXPECT_EQ(AllocationsDuring([&] { DecomposeScalarTargetBatch<float>(theta, kShape, ones, out); }),
            1u);
}

}  // namespace
}  // namespace uper
