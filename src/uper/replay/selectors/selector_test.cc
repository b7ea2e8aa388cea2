#include "uper/replay/selectors/selector.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <vector>

#include "uper/base/error.h"
#include "uper/replay/replay_for_tests.h"
#include "uper/replay/selectors/make_selector.h"
#include "uper/replay/selectors/stored_priority.h"

namespace uper::selector_test {
namespace {

constexpr SelectorKind kKinds[] = {SelectorKind::kProportional, SelectorKind::kRank,
                                   SelectorKind::kUniform};

// Probabilities by definition, by slot; `priorities` holds the filled slots only.
std::map<std::size_t, double> NaiveProbabilities(SelectorKind kind, const SelectorOptions& options,
                                                 const std::map<std::size_t, float>& priorities) {
  std::map<std::size_t, double> masses;
  for (const auto& [slot, priority] : priorities) {
    std::size_t rank = 1;
    for (const auto& [other, value] : priorities) {
      rank += value > priority || (value == priority && other < slot) ? 1 : 0;
    }
    const double base = kind == SelectorKind::kRank ? 1.0 / static_cast<double>(rank) : priority;
    masses[slot] = priority == 0 ? 0 : std::pow(base, options.priority_exponent);
    if (kind == SelectorKind::kUniform) masses[slot] = 1;
  }
  double total = 0;
  for (const auto& [slot, mass] : masses) total += mass;
  const double size = static_cast<double>(masses.size());
  for (auto& [slot, mass] : masses) {
    mass = total == 0 ? 1 / size
                      : (1 - options.uniform_mix) * mass / total + options.uniform_mix / size;
  }
  return masses;
}

float RandomPriority(RandomStream& random) {
  constexpr float kFixed[] = {0.0F, 0.0F, 1.0F, 2.0F, kSmallestPriority};
  if (random.Bernoulli(0.5)) return kFixed[random.UniformInt(std::size(kFixed))];
  return static_cast<float>(std::exp(20 * random.Uniform() - 10));
}

// A ring of slots under random appends, removals and updates, against the definition.
void RunModel(SelectorKind kind, const SelectorOptions& options, std::uint64_t seed) {
  RandomStream random(seed, "test");
  const std::size_t capacity = 1 + random.UniformInt(40);
  const auto selector = MakeSelector(kind, capacity, options);
  std::map<std::size_t, float> model;
  std::size_t next_slot = 0;
  for (std::uint64_t step = 0; step < Scaled(300, 100); ++step) {
    const std::uint64_t action = random.UniformInt(4);
    if (action == 0 && !model.empty()) {
      const std::size_t count = random.UniformInt(std::min<std::size_t>(model.size(), 3) + 1);
      for (std::size_t j = 0; j < count; ++j) {
        model.erase((next_slot + capacity - model.size()) % capacity);
      }
      selector->RemoveOldest(count);
    } else if (action == 1 && !model.empty()) {
      std::vector<std::uint32_t> slots;
      std::vector<float> priorities;
      for (int j = 0; j < 5; ++j) {
        const std::size_t age = random.UniformInt(model.size());
        slots.push_back(
            static_cast<std::uint32_t>((next_slot + 2 * capacity - 1 - age) % capacity));
        priorities.push_back(RandomPriority(random));
        model[slots.back()] = priorities.back();
      }
      selector->SetPriorities(slots, priorities);
    } else {
      const float priority = RandomPriority(random);
      model[next_slot] = priority;
      ASSERT_EQ(selector->Append(priority), next_slot);
      next_slot = (next_slot + 1) % capacity;
    }
    selector->CheckValid();
    ASSERT_EQ(selector->size(), model.size());
    if (model.empty()) continue;
    double smallest = 1;
    for (const auto& [slot, probability] : NaiveProbabilities(kind, options, model)) {
      ASSERT_NEAR(selector->Probability(slot), probability, 1e-12 * probability);
      if (probability > 0) smallest = std::min(smallest, probability);
    }
    if (step % 2 == 0) {
      ASSERT_NEAR(selector->SmallestProbability(), smallest, 1e-12 * smallest);
    }
  }
}

TEST(Selector, ModelBasedRandomOperationsGiveExactProbabilities) {
  std::uint64_t seed = 0;
  for (const SelectorKind kind : kKinds) {
    for (const double exponent : {0.0, 0.6, 1.0, 2.0}) {
      for (const double mix : {0.0, 0.1, 1.0}) {
        const SelectorOptions options{.priority_exponent = exponent, .uniform_mix = mix};
        for (int round = 0; round < 5; ++round) RunModel(kind, options, ++seed);
      }
    }
  }
}

TEST(Selector, EachDrawReportsTheProbabilityOfItsSlotAndNothingEmptyIsDrawn) {
  RandomStream random(1, "test");
  for (const SelectorKind kind : kKinds) {
    for (const double mix : {0.0, 0.3}) {
      const auto selector = MakeSelector(kind, 100, {.priority_exponent = 0.7, .uniform_mix = mix});
      for (int i = 0; i < 130; ++i) selector->Append(RandomPriority(random));
      selector->RemoveOldest(60);
      std::vector<Draw> draws(1000);
      EXPECT_EQ(selector->Sample(random, draws), 0U);
      for (const Draw& draw : draws) {
        ASSERT_EQ(draw.probability, selector->Probability(draw.slot));
        ASSERT_GT(draw.probability, 0);
      }
    }
  }
}

// One number decides one draw: below the mix it runs through all items, above it through the mass.
TEST(Selector, OneNumberDecidesBothBranches) {
  const auto selector =
      MakeSelector(SelectorKind::kProportional, 4, {.priority_exponent = 1, .uniform_mix = 0.5});
  for (const float priority : {1.0F, 0.0F, 0.0F, 3.0F}) selector->Append(priority);
  const std::vector<double> uniforms = {0,       0.12, 0.13, 0.26,  0.38,
                                        0.49999, 0.5,  0.62, 0.626, 0.9999};
  std::vector<Draw> draws(uniforms.size());
  selector->SampleAt(uniforms, draws);
  std::vector<std::uint32_t> slots;
  slots.reserve(draws.size());
  for (const Draw& draw : draws) slots.push_back(draw.slot);
  EXPECT_EQ(slots, (std::vector<std::uint32_t>{0, 0, 1, 2, 3, 3, 0, 0, 3, 3}));
  EXPECT_DOUBLE_EQ(draws[0].probability, 0.5 * 0.25 + 0.5 / 4);
  EXPECT_DOUBLE_EQ(draws[2].probability, 0.5 / 4);
}

TEST(Selector, StratifiedDrawsHitEveryEqualItemOnce) {
  for (const SelectorKind kind : kKinds) {
    const auto selector =
        MakeSelector(kind, 50, {.priority_exponent = 0, .uniform_mix = 0, .stratified = true});
    for (int i = 0; i < 50; ++i) selector->Append(1);
    RandomStream random(5, "test");
    std::vector<Draw> draws(50);
    selector->Sample(random, draws);
    std::vector<int> hits(50, 0);
    for (const Draw& draw : draws) ++hits[draw.slot];
    EXPECT_EQ(hits, std::vector<int>(50, 1));
    EXPECT_EQ(random.position(), 100U) << "one uniform number, two words, a draw";
  }
}

TEST(Selector, WithoutMassDrawsAreUniformAndCounted) {
  for (const SelectorKind kind : {SelectorKind::kProportional, SelectorKind::kRank}) {
    const auto selector = MakeSelector(kind, 8, {.priority_exponent = 0, .uniform_mix = 0});
    for (int i = 0; i < 8; ++i) selector->Append(0);
    const std::vector<double> uniforms = {0.0, 0.124, 0.126, 0.99};
    std::vector<Draw> draws(4);
    EXPECT_EQ(selector->SampleAt(uniforms, draws), 4U);
    EXPECT_EQ(draws[1].slot, 0U);
    EXPECT_EQ(draws[2].slot, 1U);
    EXPECT_EQ(draws[3].slot, 7U);
    EXPECT_EQ(draws[0].probability, 0.125);
    EXPECT_EQ(selector->Probability(3), 0.125);
    EXPECT_EQ(selector->SmallestProbability(), 0.125);
  }
}

TEST(Selector, AnotherExponentIsTheSameAsAFreshSelector) {
  RandomStream random(6, "test");
  for (const SelectorKind kind : kKinds) {
    const auto changed = MakeSelector(kind, 300, {.priority_exponent = 0.6});
    const auto fresh = MakeSelector(kind, 300, {.priority_exponent = 1.3});
    for (int i = 0; i < 400; ++i) {
      const float priority = RandomPriority(random);
      changed->Append(priority);
      fresh->Append(priority);
    }
    changed->SetExponent(1.3);
    changed->CheckValid();
    changed->Append(2);  // the single-item path must not use a mass of the old exponent
    fresh->Append(2);
    for (std::size_t slot = 0; slot < 300; ++slot) {
      ASSERT_EQ(changed->Probability(slot), fresh->Probability(slot));
    }
    EXPECT_THROW(changed->SetExponent(-0.1), Error);
    EXPECT_THROW(changed->SetExponent(std::nan("")), Error);
  }
}

TEST(Selector, StateRoundTripGivesTheSameDraws) {
  for (const SelectorKind kind : kKinds) {
    RandomStream random(7, "test");
    const auto selector = MakeSelector(kind, 90, {});
    for (int i = 0; i < 130; ++i) selector->Append(RandomPriority(random));
    selector->RemoveOldest(7);
    selector->SetExponent(0.9);
    const auto restored = MakeSelector(kind, 90, {});
    for (int i = 0; i < 55; ++i) restored->Append(3);  // the earlier content must not matter
    restored->SetState(selector->GetState());
    restored->CheckValid();
    RandomStream one(8, "test");
    RandomStream two(8, "test");
    std::vector<Draw> first(500);
    std::vector<Draw> second(500);
    selector->Sample(one, first);
    restored->Sample(two, second);
    for (std::size_t j = 0; j < 500; ++j) {
      ASSERT_EQ(first[j].slot, second[j].slot);
      ASSERT_EQ(first[j].probability, second[j].probability);
    }
  }
}

TEST(Selector, RefusesBadStatesOptionsAndPriorities) {
  const auto selector = MakeSelector(SelectorKind::kProportional, 4, {});
  selector->Append(1);
  SelectorState state = selector->GetState();
  state.capacity = 5;
  EXPECT_THROW(selector->SetState(state), Error);
  state = selector->GetState();
  state.priorities[0] = -1;
  EXPECT_THROW(selector->SetState(state), Error);
  state = selector->GetState();
  state.first_slot = 4;
  EXPECT_THROW(selector->SetState(state), Error);
  EXPECT_THROW(selector->Append(std::nanf("")), Error);
  const std::vector<std::uint32_t> empty_slot = {1};
  const std::vector<float> one = {1};
  EXPECT_THROW(selector->SetPriorities(empty_slot, one), Error);
  EXPECT_THROW(selector->RemoveOldest(2), Error);
  EXPECT_EQ(selector->Probability(0), 1);
  for (const SelectorOptions& bad :
       {SelectorOptions{.priority_exponent = 4.1}, SelectorOptions{.priority_exponent = -1},
        SelectorOptions{.uniform_mix = 1.1}, SelectorOptions{.uniform_mix = std::nan("")}}) {
    for (const SelectorKind kind : kKinds) EXPECT_THROW(MakeSelector(kind, 4, bad), Error);
  }
  EXPECT_THROW(MakeSelector(SelectorKind::kUniform, 0, {}), Error);
}

TEST(Selector, NothingCanBeDrawnFromAnEmptyOne) {
  for (const SelectorKind kind : kKinds) {
    const auto selector = MakeSelector(kind, 4, {});
    RandomStream random(1, "test");
    std::vector<Draw> draws(1);
    EXPECT_THROW(selector->Sample(random, draws), Error);
  }
}

TEST(Selector, ManyAppendedAtOnceAreAsOneByOne) {
  RandomStream random(4, "test");
  for (const SelectorKind kind : kKinds) {
    for (const std::size_t capacity : {1, 7, 64, 100}) {
      const auto together = MakeSelector(kind, capacity, {.recency_half_life = 0});
      const auto apart = MakeSelector(kind, capacity, {});
      for (int round = 0; round < 20; ++round) {
        std::vector<float> priorities(random.UniformInt(capacity + 1));
        for (float& priority : priorities) priority = RandomPriority(random);
        together->AppendMany(priorities);
        for (const float priority : priorities) apart->Append(priority);
        together->CheckValid();
        ASSERT_EQ(together->first_slot(), apart->first_slot());
        ASSERT_EQ(together->size(), apart->size());
        for (std::size_t i = 0; i < together->size(); ++i) {
          const std::size_t slot = (together->first_slot() + i) % capacity;
          ASSERT_EQ(together->Probability(slot), apart->Probability(slot));
        }
      }
    }
  }
}

// Mass halves with `half_life` newer items, also after the masses were derived afresh many times.
TEST(Selector, AgeIsAFactorOfTheMass) {
  RandomStream random(5, "test");
  constexpr double kHalfLife = 3;
  constexpr std::size_t kCapacity = 20;
  const SelectorOptions options{
      .priority_exponent = 2, .uniform_mix = 0, .recency_half_life = kHalfLife};
  const auto selector = MakeSelector(SelectorKind::kProportional, kCapacity, options);
  for (int i = 0; i < 1000; ++i) {
    const float priority = 0.5F + static_cast<float>(random.Uniform());
    if (i % 3 == 0) {
      selector->AppendMany(std::vector<float>(1 + random.UniformInt(5), priority));
    } else {
      selector->Append(priority);
    }
    const auto slot = static_cast<std::uint32_t>(
        (selector->first_slot() + random.UniformInt(selector->size())) % kCapacity);
    selector->SetPriorities({&slot, 1}, {&priority, 1});
    std::vector<double> expected(selector->size());
    for (std::size_t rank = 0; rank < expected.size(); ++rank) {
      const double p = selector->priority((selector->first_slot() + rank) % kCapacity);
      expected[rank] = p * p * std::exp2(static_cast<double>(rank) / kHalfLife);
    }
    const double total = std::accumulate(expected.begin(), expected.end(), 0.0);
    for (std::size_t rank = 0; rank < expected.size(); ++rank) {
      ASSERT_NEAR(selector->Probability((selector->first_slot() + rank) % kCapacity),
                  expected[rank] / total, 1e-12);
    }
    if (i % 100 == 0) selector->CheckValid();
  }
  const auto restored = MakeSelector(SelectorKind::kProportional, kCapacity, options);
  restored->SetState(selector->GetState());
  for (std::size_t slot = 0; slot < kCapacity; ++slot) {
    EXPECT_EQ(restored->Probability(slot), selector->Probability(slot));
  }
}

TEST(StoredPriority, KeepsPositivePositiveAndRefusesTheRest) {
  EXPECT_EQ(AcceptPriority(0.0), 0.0F);
  EXPECT_FALSE(std::signbit(AcceptPriority(-0.0).value_or(-1.0F)));
  EXPECT_EQ(AcceptPriority(1.5), 1.5F);
  EXPECT_EQ(AcceptPriority(1e-300), kSmallestPriority);
  EXPECT_EQ(AcceptPriority(double{kLargestPriority}), kLargestPriority);
  for (const double bad : {-1e-300, 1e39, -1.0, HUGE_VAL, -HUGE_VAL, std::nan("")}) {
    EXPECT_FALSE(AcceptPriority(bad).has_value()) << bad;
  }
}

}  // namespace
}  // namespace uper::selector_test
