// The functions that a training step calls must not allocate. The test counts every call of
// operator new in this program.

#include <gtest/gtest.h>

#include <vector>

#include "uper/base/replace_new_for_tests.h"
#include "uper/core/categorical.h"
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

}  // namespace
}  // namespace uper
