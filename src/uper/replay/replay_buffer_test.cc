#include "uper/replay/replay_buffer.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <deque>
#include <limits>
#include <vector>

#include "uper/base/error.h"
#include "uper/replay/replay_for_tests.h"

namespace uper {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr WeightOptions kWeights{.importance_exponent = 0.5,
                                 .normalization = WeightNormalization::kBatchMax};

RandomStream Draws(std::uint64_t seed = 1) { return {seed, "replay draws"}; }

// The expected content of the buffer, written as plainly as possible.
struct Model {
  struct Item {
    std::uint64_t id;
    double priority;
  };
  std::deque<Item> items;
  std::size_t capacity;
  std::uint64_t next_id = 0;
  double largest = 1;

  void Add(double priority) {
    if (items.size() == capacity) items.pop_front();
    items.push_back({next_id++, priority});
  }
  Item* Find(std::uint64_t id) {
    for (Item& item : items) {
      if (item.id == id) return &item;
    }
    return nullptr;
  }
};

double RandomPriority(RandomStream& random) {
  constexpr double kOdd[] = {0, 1, 1, -1, kInfinity, -kInfinity, 1e300, -0.0};
  if (random.Bernoulli(0.1)) return std::nan("");
  if (random.Bernoulli(0.4)) return kOdd[random.UniformInt(std::size(kOdd))];
  return static_cast<float>(std::exp(6 * random.Uniform() - 3));
}

bool IsValidPriority(double p) { return p >= 0 && p <= std::numeric_limits<float>::max(); }

void UpdateBoth(ReplayBuffer& buffer, Model& model, RandomStream& random, double decay) {
  std::vector<std::uint64_t> ids;
  std::vector<double> priorities;
  UpdateCounts expected;
  model.largest *= decay;
  for (int j = 0; j < 6; ++j) {
    const std::uint64_t back = random.UniformInt(2 * model.capacity);
    ids.push_back(model.next_id + 1 - std::min(model.next_id + 1, back));
    priorities.push_back(RandomPriority(random));
    Model::Item* item = model.Find(ids.back());
    if (item != nullptr && IsValidPriority(priorities.back())) {
      item->priority = priorities.back();
      model.largest = std::max(model.largest, priorities.back());
      ++expected.updated;
    } else if (item == nullptr && ids.back() < model.next_id) {
      ++expected.evicted;
    } else {
      ++expected.invalid;
    }
  }
  ASSERT_EQ(buffer.SetPriorities(ids, priorities), expected);
}

void RunModel(SelectorKind kind, double decay, std::uint64_t seed) {
  RandomStream random(seed, "test");
  Model model{.items = {}, .capacity = 1 + random.UniformInt(30)};
  ReplayBufferOptions options = SmallBuffer(model.capacity, 0.6, 0.01, kind);
  options.largest_priority_decay = decay;
  ReplayBuffer buffer(options, Draws(seed));
  for (std::uint64_t step = 0; step < Scaled(400, 120); ++step) {
    const std::uint64_t action = random.UniformInt(8);
    if (action < 3) {
      ASSERT_EQ(buffer.Add(), model.next_id);
      model.Add(static_cast<float>(model.largest));
    } else if (action == 3) {
      const double priority = RandomPriority(random);
      ASSERT_EQ(buffer.Add(priority), model.next_id);
      if (IsValidPriority(priority)) model.largest = std::max(model.largest, priority);
      model.Add(IsValidPriority(priority) ? priority : static_cast<float>(model.largest));
    } else if (action == 4 && random.Bernoulli(0.2)) {
      const std::uint64_t before = buffer.first_id() + random.UniformInt(4);
      buffer.EvictBefore(before);
      while (!model.items.empty() && model.items.front().id < before) model.items.pop_front();
    } else {
      UpdateBoth(buffer, model, random, decay);
    }
    buffer.CheckValid();
    ASSERT_EQ(buffer.size(), model.items.size());
    ASSERT_EQ(buffer.largest_priority(), model.largest);
    for (const Model::Item& item : model.items) {
      ASSERT_TRUE(buffer.Contains(item.id));
      ASSERT_EQ(buffer.Priority(item.id), item.priority);
    }
    if (model.items.empty()) continue;
    SampleMemory sample(7);
    buffer.Sample(kWeights, sample.view());
    for (std::size_t j = 0; j < 7; ++j) {
      ASSERT_NE(model.Find(sample.ids[j]), nullptr);
      ASSERT_EQ(sample.probabilities[j], buffer.Probability(sample.ids[j]));
      ASSERT_TRUE(sample.weights[j] > 0 && sample.weights[j] <= 1);
    }
  }
}

TEST(ReplayBuffer, ModelBasedRandomOperationsAgreeWithADeque) {
  std::uint64_t seed = 0;
  for (const SelectorKind kind :
       {SelectorKind::kProportional, SelectorKind::kRank, SelectorKind::kUniform}) {
    for (const double decay : {1.0, 0.9}) {
      for (int round = 0; round < 15; ++round) RunModel(kind, decay, ++seed);
    }
  }
}

TEST(ReplayBuffer, NewItemsGetTheLargestPriorityEverSeenStartingAtOne) {
  ReplayBuffer buffer(SmallBuffer(10, 0.6, 0), Draws());
  EXPECT_EQ(buffer.Priority(buffer.Add()), 1);
  const std::vector<std::uint64_t> ids = {0};
  buffer.SetPriorities(ids, std::vector{0.25});
  EXPECT_EQ(buffer.Priority(buffer.Add()), 1) << "never below the start";
  buffer.SetPriorities(ids, std::vector{7.0});
  buffer.SetPriorities(ids, std::vector{2.0});
  EXPECT_EQ(buffer.Priority(buffer.Add()), 7) << "ever seen, not now stored";
  EXPECT_EQ(buffer.Priority(buffer.Add(9.0)), 9);
  EXPECT_EQ(buffer.Priority(buffer.Add()), 9);
}

TEST(ReplayBuffer, ADecayingLargestPriorityFallsAtEachUpdate) {
  ReplayBufferOptions options = SmallBuffer(10, 0.6, 0);
  options.largest_priority_decay = 0.5;
  ReplayBuffer buffer(options, Draws());
  const std::vector<std::uint64_t> ids = {buffer.Add()};
  buffer.SetPriorities(ids, std::vector{8.0});
  EXPECT_EQ(buffer.largest_priority(), 8);
  buffer.SetPriorities(ids, std::vector{1.0});
  EXPECT_EQ(buffer.Priority(buffer.Add()), 4);
  for (int i = 0; i < 2000; ++i) buffer.SetPriorities(ids, std::vector{0.0});
  EXPECT_GT(buffer.Priority(buffer.Add()), 0) << "stays positive";
  buffer.CheckValid();
}

TEST(ReplayBuffer, WeightsFollowTheExactProbabilities) {
  ReplayBuffer buffer(SmallBuffer(4, 1, 0.1), Draws());
  for (const double priority : {1.0, 2.0, 5.0}) buffer.Add(priority);
  const double smallest = 0.9 * 1 / 8 + 0.1 / 3;
  for (const auto normalization : {WeightNormalization::kNone, WeightNormalization::kBatchMax,
                                   WeightNormalization::kBufferMax}) {
    SampleMemory sample(64);
    buffer.Sample({.importance_exponent = 0.4, .normalization = normalization}, sample.view());
    double divisor = 1;
    if (normalization == WeightNormalization::kBufferMax) divisor = std::pow(3 * smallest, -0.4);
    if (normalization == WeightNormalization::kBatchMax) {
      divisor = 0;
      for (const double p : sample.probabilities)
        divisor = std::max(divisor, std::pow(3 * p, -0.4));
    }
    for (std::size_t j = 0; j < 64; ++j) {
      const double priority = buffer.Priority(sample.ids[j]);
      ASSERT_DOUBLE_EQ(sample.probabilities[j], 0.9 * priority / 8 + 0.1 / 3);
      ASSERT_NEAR(sample.weights[j], std::pow(3 * sample.probabilities[j], -0.4) / divisor, 1e-6);
    }
  }
}

TEST(ReplayBuffer, CountersAccountForEverything) {
  ReplayBuffer buffer(SmallBuffer(4, 0.6, 0), Draws());
  for (int i = 0; i < 6; ++i) buffer.Add(i == 3 ? std::nan("") : 0.0);
  const std::vector<std::uint64_t> ids = {0, 3, 4, 99, 5};
  buffer.SetPriorities(ids, std::vector{1.0, 0.0, -1.0, 1.0, 0.0});
  SampleMemory sample(5);
  buffer.Sample(kWeights, sample.view());
  const ReplayCounters expected{.added = 6,
                                .evicted = 2,
                                .invalid_insertions = 1,
                                .drawn = 5,
                                .uniform_fallbacks = 5,
                                .updated = 2,
                                .updates_of_evicted = 1,
                                .invalid_updates = 2};
  EXPECT_EQ(buffer.counters(), expected);
}

// Special values and a walk over all exponents and signs of float (and so of double).
TEST(ReplayBuffer, NoBitPatternMakesTheTreeNonFinite) {
  for (const double exponent : {0.0, 0.6, 4.0}) {
    ReplayBuffer buffer(SmallBuffer(64, exponent, 0), Draws());
    for (int i = 0; i < 64; ++i) buffer.Add();
    std::vector<std::uint64_t> ids(64);
    std::vector<double> priorities(64);
    const std::uint64_t stride = Scaled(20'011, 2'000'003);
    std::uint64_t pattern = 0;
    while (pattern < (std::uint64_t{1} << 32)) {
      for (std::size_t j = 0; j < 64; ++j, pattern += stride) {
        ids[j] = j;
        priorities[j] = std::bit_cast<float>(static_cast<std::uint32_t>(pattern));
      }
      const UpdateCounts counts = buffer.SetPriorities(ids, priorities);
      ASSERT_EQ(counts.updated + counts.invalid, 64U);
      const double probability = buffer.Probability(pattern % 64);
      ASSERT_TRUE(probability >= 0 && probability <= 1);
    }
    buffer.CheckValid();
    ASSERT_TRUE(std::isfinite(buffer.largest_priority()));
    SampleMemory sample(32);
    buffer.Sample(kWeights, sample.view());
    for (const float weight : sample.weights) ASSERT_TRUE(std::isfinite(weight));
  }
}

TEST(ReplayBuffer, StateRoundTripContinuesBitForBit) {
  for (const SelectorKind kind :
       {SelectorKind::kProportional, SelectorKind::kRank, SelectorKind::kUniform}) {
    ReplayBuffer buffer(SmallBuffer(50, 0.6, 0.01, kind), Draws(3));
    RandomStream random(4, "test");
    for (int i = 0; i < 130; ++i) buffer.Add(RandomPriority(random));
    SampleMemory sample(33);
    buffer.Sample(kWeights, sample.view());
    buffer.EvictBefore(90);
    buffer.SetPriorityExponent(0.8);

    ReplayBuffer restored(SmallBuffer(50, 0.6, 0.01, kind), Draws(3));
    for (int i = 0; i < 7; ++i) restored.Add();
    restored.SetState(buffer.GetState());
    restored.CheckValid();
    for (int round = 0; round < 20; ++round) {
      SampleMemory one(9);
      SampleMemory two(9);
      buffer.Sample(kWeights, one.view());
      restored.Sample(kWeights, two.view());
      ASSERT_EQ(one, two);
      std::vector<double> priorities(9);
      for (double& priority : priorities) priority = RandomPriority(random);
      ASSERT_EQ(buffer.SetPriorities(one.ids, priorities),
                restored.SetPriorities(two.ids, priorities));
      ASSERT_EQ(buffer.Add(), restored.Add());
    }
    EXPECT_EQ(buffer.counters(), restored.counters());
    EXPECT_EQ(buffer.largest_priority(), restored.largest_priority());
  }
}

TEST(ReplayBuffer, RefusesStatesThatContradictThemselves) {
  ReplayBuffer buffer(SmallBuffer(5, 0.6, 0), Draws());
  for (int i = 0; i < 7; ++i) buffer.Add();
  const ReplayBufferState good = buffer.GetState();
  std::vector<ReplayBufferState> bad(5, good);
  bad[0].next_id = 3;
  bad[1].first_id = 1;
  bad[2].selector.first_slot = 0;
  bad[3].largest_priority = std::nan("");
  bad[4].selector.priorities.pop_back();
  for (const ReplayBufferState& state : bad) EXPECT_THROW(buffer.SetState(state), Error);
  buffer.CheckValid();
  buffer.SetState(good);
}

TEST(ReplayBuffer, RefusesOptionsOutOfRange) {
  for (const double bad : {0.0, -1.0, kInfinity, std::nan("")}) {
    ReplayBufferOptions options = SmallBuffer(5, 0.6, 0);
    options.initial_priority = bad;
    EXPECT_THROW(ReplayBuffer(options, Draws()), Error);
  }
  for (const double bad : {0.0, 1.1, std::nan("")}) {
    ReplayBufferOptions options = SmallBuffer(5, 0.6, 0);
    options.largest_priority_decay = bad;
    EXPECT_THROW(ReplayBuffer(options, Draws()), Error);
  }
  EXPECT_THROW(ReplayBuffer(SmallBuffer(0, 0.6, 0), Draws()), Error);
}

TEST(ReplayBuffer, CapacityOneKeepsTheNewest) {
  ReplayBuffer buffer(SmallBuffer(1, 0.6, 0.001), Draws());
  for (int i = 0; i < 5; ++i) buffer.Add();
  SampleMemory sample(3);
  buffer.Sample(kWeights, sample.view());
  EXPECT_EQ(sample.ids, (std::vector<std::uint64_t>{4, 4, 4}));
  EXPECT_EQ(sample.probabilities, (std::vector<double>{1, 1, 1}));
}

// A buffer that mirrors a device ends in the same state as one that draws itself.
TEST(ReplayBufferMirror, TakesOverWhatTheDeviceDid) {
  ReplayBufferOptions options{.capacity = 5};
  ReplayBuffer here(options, RandomStream(1, "draws"));
  options.selector = SelectorKind::kMirror;
  ReplayBuffer mirror(options, RandomStream(1, "draws"));
  for (int i = 0; i < 7; ++i) {
    here.Add();
    mirror.Add();
  }
  std::vector<std::uint64_t> ids(4);
  std::vector<double> probabilities(4), uniforms(4);
  std::vector<float> weights(4);
  here.Sample({}, {.ids = ids, .probabilities = probabilities, .weights = weights});
  mirror.DrawUniforms(uniforms);
  const UpdateCounts counts = here.SetPriorities(ids, std::vector<double>{3, -1, 0.5, 2});
  mirror.CountDeviceDraws(4, 0, counts);
  mirror.LoadDevicePriorities(here.GetState().selector.priorities, here.largest_priority());
  mirror.CheckValid();
  EXPECT_EQ(mirror.GetState().selector.priorities, here.GetState().selector.priorities);
  EXPECT_EQ(mirror.GetState().stream_position, here.GetState().stream_position);
  EXPECT_EQ(mirror.counters(), here.counters());
  EXPECT_EQ(mirror.largest_priority(), here.largest_priority());
  EXPECT_THROW(mirror.Probability(3), Error);
}

}  // namespace
}  // namespace uper
