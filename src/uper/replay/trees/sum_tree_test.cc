#include "uper/replay/trees/sum_tree.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "uper/base/error.h"
#include "uper/base/random.h"
#include "uper/replay/replay_for_tests.h"

namespace uper {
namespace {

// The slot by definition: the first whose cumulative mass exceeds the target.
std::size_t NaiveFind(const std::vector<double>& masses, double target) {
  double sum = 0;
  for (std::size_t i = 0; i < masses.size(); ++i) {
    sum += masses[i];
    if (target < sum) return i;
  }
  return masses.size();
}

// Integer masses make all sums exact, so tree and naive prefix sums must agree without tolerance.
TEST(SumTree, ModelBasedRandomOperationsAgreeWithPrefixSums) {
  RandomStream random(1, "test");
  for (const std::size_t capacity : {1, 3, 8, 9, 64, 100, 600}) {
    SumTree tree(capacity);
    std::vector<double> model(capacity, 0.0);
    for (std::uint64_t step = 0; step < Scaled(3000, 600); ++step) {
      const std::size_t batch = 1 + random.UniformInt(5);
      std::vector<std::uint32_t> slots(batch);
      std::vector<double> masses(batch);
      for (std::size_t j = 0; j < batch; ++j) {
        slots[j] = static_cast<std::uint32_t>(random.UniformInt(capacity));
        masses[j] = random.Bernoulli(0.4) ? 0.0 : static_cast<double>(random.UniformInt(1000));
        model[slots[j]] = masses[j];
      }
      tree.SetMany(slots, masses);
      double total = 0;
      for (const double mass : model) total += mass;
      ASSERT_EQ(tree.Total(), total);
      if (total == 0) continue;
      const auto target = static_cast<double>(random.UniformInt(static_cast<std::uint64_t>(total)));
      ASSERT_EQ(tree.Find(target), NaiveFind(model, target));
      ASSERT_EQ(tree.Find(target + 0.5), NaiveFind(model, target + 0.5));
    }
    tree.CheckValid();
  }
}

TEST(SumTree, BatchSearchEqualsSingleSearch) {
  RandomStream random(2, "test");
  SumTree tree(5000);
  for (std::size_t i = 0; i < 5000; ++i) tree.Set(i, random.Uniform());
  for (const std::size_t batch : {1, 31, 32, 33, 256}) {
    std::vector<double> masses(batch);
    std::vector<std::uint32_t> slots(batch);
    for (double& mass : masses) mass = random.Uniform() * tree.Total();
    tree.FindMany(masses, slots);
    for (std::size_t j = 0; j < batch; ++j) EXPECT_EQ(slots[j], tree.Find(masses[j]));
  }
}

// Masses from 1e-300 to 1e300 with most slots empty: rounding swallows whole subtrees, yet no
// search may end in an empty slot, wherever it starts.
TEST(SumTree, NeverFindsAnEmptySlotUnderExtremeRatios) {
  RandomStream random(3, "test");
  for (std::uint64_t round = 0; round < Scaled(2000, 200); ++round) {
    const std::size_t capacity = 1 + random.UniformInt(700);
    SumTree tree(capacity);
    const std::size_t filled = 1 + random.UniformInt(6);
    for (std::size_t j = 0; j < filled; ++j) {
      tree.Set(random.UniformInt(capacity), std::pow(10, 600 * random.Uniform() - 300));
    }
    std::vector<double> targets = {0,
                                   tree.Total(),
                                   std::nextafter(tree.Total(), 0.0),
                                   2 * tree.Total(),
                                   std::numeric_limits<double>::denorm_min(),
                                   std::numeric_limits<double>::infinity(),
                                   -1.0,
                                   std::numeric_limits<double>::quiet_NaN()};
    for (int j = 0; j < 50; ++j) targets.push_back(random.Uniform() * tree.Total());
    for (int j = 0; j < 50; ++j) targets.push_back((1 - j * 0x1p-53) * tree.Total());
    for (const double target : targets) ASSERT_GT(tree.Get(tree.Find(target)), 0) << target;
  }
}

// 0.1 is not a binary fraction: sums round, and the largest target falls behind the last interval.
TEST(SumTree, RightEdgeIsTheLastSlotWithMass) {
  for (const std::size_t last : {0, 6, 7, 8, 70, 99}) {
    SumTree tree(100);
    for (std::size_t i = 0; i <= last; ++i) tree.Set(i, 0.1);
    EXPECT_EQ(tree.Find(tree.Total()), last);
    EXPECT_EQ(tree.Find(std::nextafter(tree.Total(), 0.0)), last);
    EXPECT_EQ(tree.Find(0), 0U);
  }
}

// The "everything is learned" regime, in which sums kept by differences end up wrong by 0.4 %.
TEST(SumTree, HundredMillionUpdatesDoNotDrift) {
  constexpr std::size_t kSlots = 4096;
  SumTree tree(kSlots);
  std::uint64_t state = 1;
  for (std::uint64_t step = 0; step < Scaled(100'000'000, 2'000'000); ++step) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    const double mantissa = static_cast<double>(state >> 40);  // 24 bits
    tree.Set((state >> 20) % kSlots, std::ldexp(mantissa, static_cast<int>(state % 40) - 54));
  }
  tree.CheckValid();
  SumTree fresh(kSlots);
  for (std::size_t i = 0; i < kSlots; ++i) fresh.Set(i, tree.Get(i));
  EXPECT_EQ(tree.Total(), fresh.Total());
  for (std::size_t i = 0; i < kSlots; ++i) tree.Set(i, 1e-9);
  EXPECT_NEAR(tree.Total(), kSlots * 1e-9, kSlots * 1e-9 * 1e-15);
}

double LargestMass(const SumTree& tree) {
  return std::numeric_limits<double>::max() / (2 * static_cast<double>(tree.capacity()));
}

TEST(SumTree, RefusesWhatIsNotAMassAndChangesNothing) {
  SumTree tree(10);
  tree.Set(3, 2);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const double bad : {-1.0, kInfinity, -kInfinity, std::nan(""), 2 * LargestMass(tree)}) {
    EXPECT_THROW(tree.Set(1, bad), Error);
    const std::vector<std::uint32_t> slots = {0, 1};
    const std::vector<double> masses = {5, bad};
    EXPECT_THROW(tree.SetMany(slots, masses), Error);
  }
  EXPECT_THROW(tree.Set(10, 1), Error);
  EXPECT_EQ(tree.Total(), 2);
  tree.CheckValid();
}

TEST(SumTree, TotalOfTheLargestMassesIsFinite) {
  SumTree tree(1000);
  tree.Assign([&](std::size_t) { return LargestMass(tree); });
  EXPECT_TRUE(std::isfinite(tree.Total()));
}

TEST(SumTree, SearchInAnEmptyTreeIsRefused) {
  const SumTree tree(10);
  std::vector<double> masses(1);
  std::vector<std::uint32_t> slots(1);
  EXPECT_THROW(static_cast<void>(tree.Find(0)), Error);
  EXPECT_THROW(tree.FindMany(masses, slots), Error);
}

}  // namespace
}  // namespace uper
