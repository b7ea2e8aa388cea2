#include "uper/replay/fields/slot_index.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <vector>

#include "uper/replay/replay_for_tests.h"

namespace uper::slot_index_test {
namespace {

SlotIndex MakeIndex(std::size_t capacity, double mix) {
  return SlotIndex(
      {.capacity = capacity, .selection = {.priority_exponent = 1, .uniform_mix = mix}},
      RandomStream(1, "replay draws"));
}

// Puts, drops and updates at random, against a map from slot to (id, priority).
TEST(SlotIndexTest, RandomOperationsAgainstAModel) {
  for (const double mix : {0.0, 0.25, 1.0}) {
    RandomStream random(1, "test");
    SlotIndex index = MakeIndex(17, mix);
    std::map<std::uint64_t, std::pair<std::uint64_t, double>> items;
    std::vector<std::uint64_t> puts(17, 0);
    for (int i = 0; i < 3000; ++i) {
      const std::uint64_t slot = random.UniformInt(17);
      const double priority = static_cast<double>(random.UniformInt(4));
      if (random.Bernoulli(0.4)) {
        std::uint64_t id;
        index.Put({&slot, 1}, {&priority, 1}, {&id, 1});
        ASSERT_EQ(id, puts[slot]++ * 17 + slot);
        items[slot] = {id, priority};
      } else if (random.Bernoulli(0.3)) {
        index.Drop({&slot, 1});
        items.erase(slot);
      } else {
        const std::uint64_t id = random.UniformInt(puts[slot] + 1) * 17 + slot;
        const bool live = items.contains(slot) && items[slot].first == id;
        const UpdateCounts counts = index.SetPriorities({&id, 1}, {&priority, 1});
        ASSERT_EQ(counts.updated, live ? 1U : 0U);
        ASSERT_EQ(counts.invalid, id / 17 >= puts[slot] ? 1U : 0U);
        if (live) items[slot].second = priority;
      }
      ASSERT_EQ(index.size(), items.size());
      if (i % 50 == 0) index.CheckValid();
      double mass = 0;
      for (const auto& [_, item] : items) mass += item.second;
      const double n = static_cast<double>(items.size());
      for (const auto& [_, item] : items) {
        const double expected = mass > 0 ? (1 - mix) * item.second / mass + mix / n : 1 / n;
        ASSERT_NEAR(index.Probability(item.first), expected, 1e-12);
      }
    }
  }
}

TEST(SlotIndexTest, DrawsHaveTheStatedProbabilities) {
  SlotIndex index = MakeIndex(40, 0.3);
  std::vector<std::uint64_t> slots, ids;
  std::vector<double> priorities, expected;
  for (std::uint64_t slot = 0; slot < 40; slot += 2) {
    slots.push_back(slot);
    priorities.push_back(static_cast<double>(slot % 7));
  }
  ids.resize(slots.size());
  index.Put(slots, priorities, ids);
  for (const std::uint64_t id : ids) expected.push_back(index.Probability(id));
  std::vector<std::uint64_t> counts(slots.size(), 0), drawn(256);
  std::vector<double> probabilities(256);
  std::vector<float> weights(256);
  for (int i = 0; i < 400; ++i) {
    index.Sample({}, {drawn, probabilities, weights});
    for (const std::uint64_t id : drawn) ++counts[id / 2];
  }
  const ChiSquare chi = ComputeChiSquare(counts, expected);
  EXPECT_LT(chi.statistic, chi.threshold());
}

}  // namespace
}  // namespace uper::slot_index_test
