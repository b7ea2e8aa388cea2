#include "uper/replay/trees/wide_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "uper/base/random.h"

namespace uper {
namespace {

constexpr std::size_t kSizes[] = {1, 2, 7, 8, 9, 63, 64, 65, 511, 512, 513, 4096, 5000};

TEST(WideTree, RootIsTheReductionOfTheLeavesForAllShapes) {
  RandomStream random(1, "test");
  for (const std::size_t size : kSizes) {
    WideTree<SumReduction> sums(size);
    WideTree<MinReduction> minima(size);
    std::vector<double> leaves(size);
    EXPECT_EQ(sums.root(), 0);
    EXPECT_EQ(minima.root(), MinReduction::kIdentity);
    for (std::size_t i = 0; i < size; ++i) {
      leaves[i] = random.Uniform();
      sums.Set(i, leaves[i]);
      minima.Set(i, leaves[i]);
    }
    EXPECT_NEAR(sums.root(), std::accumulate(leaves.begin(), leaves.end(), 0.0), 1e-12 * 5000);
    EXPECT_EQ(minima.root(), *std::min_element(leaves.begin(), leaves.end()));
    sums.CheckValid();
    minima.CheckValid();
  }
}

// Leaves may be set one by one, in batches of any size (with duplicates) or in one pass. The tree
// is the same, bit for bit, because every inner value is a pure function of the leaves.
TEST(WideTree, EveryWayToTheSameLeavesGivesTheSameBits) {
  RandomStream random(2, "test");
  for (const std::size_t size : kSizes) {
    for (const std::size_t batch : {1, 2, 5, 32, 300}) {
      WideTree<SumReduction> single(size);
      WideTree<SumReduction> batched(size);
      for (int round = 0; round < 20; ++round) {
        std::vector<std::uint32_t> leaves(batch);
        std::vector<double> values(batch);
        for (std::size_t j = 0; j < batch; ++j) {
          leaves[j] = static_cast<std::uint32_t>(random.UniformInt(size));
          values[j] = std::exp(40 * random.Uniform() - 20);
          single.Set(leaves[j], values[j]);
        }
        batched.SetMany(leaves, values);
        ASSERT_EQ(single.root(), batched.root());
      }
      batched.CheckValid();
      WideTree<SumReduction> fresh(size);
      fresh.Assign([&](std::size_t i) { return single.leaf(i); });
      EXPECT_EQ(fresh.root(), single.root());
    }
  }
}

TEST(WideTree, CheckValidSeesAnyWrongInnerValue) {
  WideTree<SumReduction> tree(1000);
  for (std::size_t i = 0; i < 1000; ++i) tree.Set(i, 1);
  using Node = WideTree<SumReduction>::Node;
  for (std::size_t level = 0; level < tree.levels(); ++level) {
    Node& node = const_cast<Node&>(tree.level_nodes(level)[0]);
    const double good = node.value[1];
    node.value[1] = good + 1e-9;
    EXPECT_THROW(tree.CheckValid(), Error) << "level " << level;
    node.value[1] = good;
    tree.CheckValid();
  }
}

TEST(WideTree, NeedsAboutNineBytesALeaf) {
  EXPECT_LT(WideTree<SumReduction>::MemoryBytes(100'000'000), 9.2 * 1e8);
  EXPECT_GT(WideTree<SumReduction>::MemoryBytes(100'000'000), 8.0 * 1e8);
}

TEST(WideTree, RefusesToBeEmpty) { EXPECT_THROW(WideTree<SumReduction>(0), Error); }

}  // namespace
}  // namespace uper
