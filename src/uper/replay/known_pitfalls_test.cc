// Defects found in other replay memories, one test per defect. The comment above each test
// describes the defect elsewhere; the numbers are those of our list.

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>
#include <vector>

#include "uper/replay/n_step_accumulator.h"
#include "uper/replay/replay_for_tests.h"
#include "uper/replay/selectors/stored_priority.h"
#include "uper/replay/transition_replay.h"

namespace uper::known_pitfalls_test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr WeightOptions kWeights{.importance_exponent = 0.5};

RandomStream Draws() { return {1, "replay draws"}; }

std::vector<double> Probabilities(const ReplayBuffer& buffer) {
  std::vector<double> probabilities;
  for (std::uint64_t id = buffer.first_id(); id < buffer.next_id(); ++id) {
    probabilities.push_back(buffer.Probability(id));
  }
  return probabilities;
}

std::vector<std::uint64_t> DrawCounts(ReplayBuffer& buffer, int batches) {
  std::vector<std::uint64_t> counts(buffer.size(), 0);
  SampleMemory sample(64);
  for (int i = 0; i < batches; ++i) {
    buffer.Sample(kWeights, sample.view());
    for (const std::uint64_t id : sample.ids) ++counts[id - buffer.first_id()];
  }
  return counts;
}

// 1. An infinite priority was accepted and later set back to 1, in a table of eight items. Then
// three items were never drawn again and one took half of all draws. The reported probabilities did
// not show it.
TEST(KnownPitfalls, InfinityLeavesNoTrace) {
  ReplayBuffer buffer(SmallBuffer(8, 1, 0), Draws());
  for (int i = 0; i < 8; ++i) buffer.Add();
  const std::vector<std::uint64_t> ids = {3};
  EXPECT_EQ(buffer.SetPriorities(ids, std::vector{kInfinity}).invalid, 1U);
  buffer.CheckValid();
  EXPECT_EQ(buffer.SetPriorities(ids, std::vector{1.0}).updated, 1U);
  const std::vector<std::uint64_t> counts = DrawCounts(buffer, 500);
  const ChiSquare fit = ComputeChiSquare(counts, std::vector<double>(8, 0.125));
  EXPECT_LT(fit.statistic, fit.threshold());
  EXPECT_EQ(Probabilities(buffer), std::vector<double>(8, 0.125));
}

// 2. After one NaN every later draw returned item 0 with a NaN weight. Negative priorities gave NaN
// weights.
TEST(KnownPitfalls, NanAndNegativePrioritiesChangeNothing) {
  for (const double bad : {std::nan(""), -std::nan(""), -1.0, -kInfinity, -1e-320}) {
    ReplayBuffer touched(SmallBuffer(8, 0.6, 0.01), Draws());
    ReplayBuffer untouched(SmallBuffer(8, 0.6, 0.01), Draws());
    for (int i = 0; i < 5; ++i) {
      touched.Add(1.0 + i);
      untouched.Add(1.0 + i);
    }
    const std::vector<std::uint64_t> ids = {0, 4, 2};
    EXPECT_EQ(touched.SetPriorities(ids, std::vector(3, bad)).invalid, 3U);
    touched.Add(bad);  // enters with the largest
    untouched.Add();
    SampleMemory one(64);
    SampleMemory two(64);
    touched.Sample(kWeights, one.view());
    untouched.Sample(kWeights, two.view());
    EXPECT_EQ(one, two);
    for (const float weight : one.weights) EXPECT_TRUE(weight > 0 && weight <= 1);
  }
}

// 3. The exponent had no effect, and no test noticed (draw frequencies: draw_distribution_test).
TEST(KnownPitfalls, TheExponentChangesProbabilities) {
  for (const double exponent : {0.0, 0.5, 1.0, 2.0}) {
    ReplayBuffer buffer(SmallBuffer(2, exponent, 0), Draws());
    buffer.Add(1.0);
    buffer.Add(4.0);
    EXPECT_NEAR(buffer.Probability(1) / buffer.Probability(0), std::pow(4, exponent), 1e-12);
    ReplayBuffer ranked(SmallBuffer(2, exponent, 0, SelectorKind::kRank), Draws());
    ranked.Add(1.0);
    ranked.Add(4.0);
    EXPECT_NEAR(ranked.Probability(1) / ranked.Probability(0), std::pow(2, exponent), 1e-12);
  }
}

// 4a. If an id occurred several times in one update, the first entry won.
TEST(KnownPitfalls, TheLastOfDuplicateIdsWins) {
  for (const SelectorKind kind : {SelectorKind::kProportional, SelectorKind::kRank}) {
    ReplayBuffer buffer(SmallBuffer(4, 1, 0, kind), Draws());
    for (int i = 0; i < 3; ++i) buffer.Add();
    const std::vector<std::uint64_t> ids = {1, 2, 1, 1, 2};
    const std::vector<double> priorities = {5, 6, 7, 0.5, std::nan("")};
    EXPECT_EQ(buffer.SetPriorities(ids, priorities),
              (UpdateCounts{.updated = 4, .evicted = 0, .invalid = 1}));
    EXPECT_EQ(buffer.Priority(1), 0.5);
    EXPECT_EQ(buffer.Priority(2), 6);
    buffer.CheckValid();
  }
}

// 4b. The largest priority was lost by saving and loading.
TEST(KnownPitfalls, ResumeKeepsTheLargestPriority) {
  ReplayBuffer buffer(SmallBuffer(2, 0.6, 0), Draws());
  buffer.Add(50.0);
  for (int i = 0; i < 4; ++i) buffer.Add(1.0);  // evicts the item itself
  ReplayBuffer restored(SmallBuffer(2, 0.6, 0), Draws());
  restored.SetState(buffer.GetState());
  EXPECT_EQ(restored.Priority(restored.Add()), 50);
}

// 4c. Keys were 32-bit numbers, which a long run exhausts.
TEST(KnownPitfalls, IdsGoOnBeyond32Bits) {
  ReplayBuffer buffer(SmallBuffer(8, 0.6, 0), Draws());
  ReplayBufferState state = buffer.GetState();
  const std::uint64_t start = (std::uint64_t{1} << 32) - 5;
  state.first_id = start;
  state.next_id = start;
  state.selector.first_slot = start % 8;
  buffer.SetState(state);
  for (std::uint64_t i = 0; i < 20; ++i) EXPECT_EQ(buffer.Add(), start + i);
  SampleMemory sample(64);
  buffer.Sample(kWeights, sample.view());
  for (const std::uint64_t id : sample.ids) EXPECT_GE(id, start + 12);
  const std::vector<std::uint64_t> ids = {start + 19, start + 19 - (std::uint64_t{1} << 32)};
  EXPECT_EQ(buffer.SetPriorities(ids, std::vector{2.0, 2.0}),
            (UpdateCounts{.updated = 1, .evicted = 1, .invalid = 0}));
}

// 5. Sums kept by adding differences drift. Priorities fall by many orders of magnitude during
// learning, and the rounding errors of the large ones stay (the full-length test is
// SumTree.HundredMillionUpdatesDoNotDrift).
TEST(KnownPitfalls, SumsDoNotDriftWhenEverythingIsLearned) {
  ReplayBuffer buffer(SmallBuffer(512, 1, 0), Draws());
  for (int i = 0; i < 512; ++i) buffer.Add();
  RandomStream random(2, "test");
  std::vector<std::uint64_t> ids(64);
  std::vector<double> priorities(64);
  for (std::uint64_t batch = 0; batch < Scaled(20'000, 1'000); ++batch) {
    for (std::size_t j = 0; j < 64; ++j) {
      ids[j] = random.UniformInt(512);
      priorities[j] = std::pow(10, 12 * random.Uniform() - 9);
    }
    buffer.SetPriorities(ids, priorities);
  }
  for (std::uint64_t id = 0; id < 512; ++id) {
    buffer.SetPriorities(std::vector{id}, std::vector{1e-9});
  }
  for (const double probability : Probabilities(buffer)) EXPECT_EQ(probability, 1.0 / 512);
}

// 6. By rounding, a search landed beyond the filled range.
TEST(KnownPitfalls, NoDrawFallsBeyondTheFilledRange) {
  RandomStream random(3, "test");
  for (std::uint64_t round = 0; round < Scaled(500, 50); ++round) {
    SelectorOptions options{.priority_exponent = 4, .uniform_mix = 0};
    const auto selector = MakeSelector(SelectorKind::kProportional, 1000, options);
    const std::size_t filled = 1 + random.UniformInt(999);
    for (std::size_t i = 0; i < filled; ++i) {
      selector->Append(AcceptPriority(std::pow(10, 76 * random.Uniform() - 38)).value_or(0));
    }
    std::vector<double> uniforms;
    uniforms.reserve(64);
    for (int j = 0; j < 64; ++j) uniforms.push_back(1 - (j + 1) * 0x1p-53);
    std::vector<Draw> draws(uniforms.size());
    selector->SampleAt(uniforms, draws);
    for (const Draw& draw : draws) {
      ASSERT_LT(draw.slot, filled);
      ASSERT_GT(draw.probability, 0);
    }
  }
}

// 7. The largest priority was stored with the exponent applied, and the exponent was applied again.
// A change of the exponent left the old values in the tree.
TEST(KnownPitfalls, TheExponentIsAppliedOnceAndCanChange) {
  ReplayBuffer buffer(SmallBuffer(4, 0.5, 0), Draws());
  buffer.Add(16.0);
  for (int i = 0; i < 3; ++i) buffer.Add();
  for (const double probability : Probabilities(buffer)) EXPECT_EQ(probability, 0.25);
  buffer.SetPriorities(std::vector<std::uint64_t>{1, 2, 3}, std::vector{1.0, 1.0, 1.0});
  EXPECT_DOUBLE_EQ(buffer.Probability(0), 4.0 / 7);
  buffer.SetPriorityExponent(1);
  EXPECT_DOUBLE_EQ(buffer.Probability(0), 16.0 / 19);
  buffer.Add();
  EXPECT_DOUBLE_EQ(buffer.Probability(4), 16.0 / 19) << "id 0 left, id 4 has the same priority";
}

// 8. Sharing frames between observations returned the first frame of the *next* episode as the last
// observation of a truncated one.
TEST(KnownPitfalls, TruncationBootstrapsFromTheFinalFrameNotTheResetFrame) {
  FrameReplay replay({.buffer = SmallBuffer(16, 0.6, 0), .masks = {}},
                     FrameStore({.capacity = 16, .frame_bytes = 1, .stack_depth = 2}),
                     ReplayStreams(1));
  FrameStack stack(2);
  NStepAccumulator<FrameStack> accumulator(1);
  const auto observe = [&](std::uint8_t frame) {
    stack.Push(replay.AddFrame(std::span(&frame, 1)));
  };
  observe(1);
  accumulator.Start(stack);
  observe(2);
  for (const auto& t : accumulator.Step(0, {}, stack)) replay.Add(t);
  observe(3);  // the final frame of the truncated episode
  for (const auto& t : accumulator.Step(0, {.truncated = true}, stack)) replay.Add(t);
  stack.Clear();
  observe(100);  // the next episode
  accumulator.Start(stack);
  observe(101);
  for (const auto& t : accumulator.Step(0, {}, stack)) replay.Add(t);

  ReplayBatch batch = replay.MakeBatch(3);
  for (std::uint64_t id = 0; id < 3; ++id) replay.Gather(id, id, batch.view());
  const auto bytes = [](const std::vector<std::byte>& v) {
    std::vector<int> values;
    values.reserve(v.size());
    for (const std::byte b : v) values.push_back(std::to_integer<int>(b));
    return values;
  };
  EXPECT_EQ(bytes(batch.s_tm1), (std::vector{1, 0, 1, 2, 100, 0}));
  EXPECT_EQ(bytes(batch.s_t), (std::vector{1, 2, 2, 3, 100, 101}));
  EXPECT_EQ(batch.discount_t, (std::vector{1.0F, 1.0F, 1.0F}));
}

// 9a. The last n - 1 starts of an episode were lost.
TEST(KnownPitfalls, EveryStepStartsOneTransition) {
  for (const bool terminated : {true, false}) {
    for (int length = 1; length <= 9; ++length) {
      NStepAccumulator<int> accumulator(4);
      accumulator.Start(0);
      std::multiset<int> starts;
      for (int t = 0; t < length; ++t) {
        const bool last = t + 1 == length;
        for (const auto& transition :
             accumulator.Step(t, {.terminated = last && terminated, .truncated = last}, t + 1)) {
          EXPECT_EQ(transition.s_t, std::min(transition.s_tm1 + 4, length));
          starts.insert(transition.s_tm1);
        }
      }
      EXPECT_EQ(starts.size(), static_cast<std::size_t>(length));
      EXPECT_EQ(std::set<int>(starts.begin(), starts.end()).size(), starts.size());
    }
  }
}

// 9b. Windows mixed environments, or crossed the end of an episode or the write cursor. An
// accumulator belongs to one environment and is cleared at the end of an episode.
// TransitionReplay.ModelBased* tests many environments on a small ring.
TEST(KnownPitfalls, WindowsDoNotCrossEpisodesOrEnvironments) {
  std::vector<NStepAccumulator<int>> lanes(2, NStepAccumulator<int>(3));
  lanes[0].Start(0);
  lanes[1].Start(1000);
  for (int t = 1; t < 40; ++t) {
    for (int lane = 0; lane < 2; ++lane) {
      auto& accumulator = lanes[static_cast<std::size_t>(lane)];
      const bool last = t % (5 + lane) == 0;
      for (const auto& transition : accumulator.Step(0, {.truncated = last}, 1000 * lane + t)) {
        EXPECT_EQ(transition.s_tm1 / 1000, lane);
        EXPECT_EQ(transition.s_t / 1000, lane);
        EXPECT_LE(transition.s_t - transition.s_tm1, 3);
        const int first_after_reset = (transition.s_t % 1000 - 1) / (5 + lane) * (5 + lane);
        EXPECT_GE(transition.s_tm1 % 1000, first_after_reset);
      }
      if (last) accumulator.Start(1000 * lane + t);
    }
  }
}

// 10. The cost of a sample grew with the capacity. A hundred times the capacity may cost a few more
// levels and cache misses, never anything near a hundred times as much.
TEST(KnownPitfalls, CostDoesNotGrowWithCapacity) {
  const auto best_seconds = [](std::size_t capacity) {
    ReplayBuffer buffer(SmallBuffer(capacity, 1, 0.01), Draws());
    for (std::size_t i = 0; i < capacity; ++i) buffer.Add();
    SampleMemory sample(256);
    const std::vector<double> priorities(256, 0.5);
    double best = kInfinity;
    for (int round = 0; round < 60; ++round) {
      const auto start = std::chrono::steady_clock::now();
      buffer.Sample(kWeights, sample.view());
      buffer.SetPriorities(sample.ids, priorities);
      buffer.Add();
      const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
      best = std::min(best, elapsed.count());
    }
    return best;
  };
  EXPECT_LT(best_seconds(1'000'000), 15 * best_seconds(10'000));
}

// 11. Prefetching advanced the generator, so a resumed run skipped batches. A state that is saved
// while a batch is in flight must draw the same next batch. It must also accept the late update of
// the batch in flight.
TEST(KnownPitfalls, ResumeWithABatchInFlight) {
  ReplayBuffer buffer(SmallBuffer(50, 0.6, 0.01), Draws());
  for (int i = 0; i < 70; ++i) buffer.Add(1.0 + i % 5);
  SampleMemory in_flight(16);
  buffer.Sample(kWeights, in_flight.view());
  ReplayBuffer restored(SmallBuffer(50, 0.6, 0.01), Draws());
  restored.SetState(buffer.GetState());
  const std::vector<double> priorities(16, 3.0);
  EXPECT_EQ(buffer.SetPriorities(in_flight.ids, priorities),
            restored.SetPriorities(in_flight.ids, priorities));
  SampleMemory one(16);
  SampleMemory two(16);
  buffer.Sample(kWeights, one.view());
  restored.Sample(kWeights, two.view());
  EXPECT_EQ(one, two);
}

// 12. Benchmarks did not measure what they claimed. With the counters a benchmark can assert how
// much work of each kind was done.
TEST(KnownPitfalls, CountersProveWhatABenchmarkDid) {
  ReplayBuffer buffer(SmallBuffer(100, 0.6, 0), Draws());
  SampleMemory sample(32);
  for (int i = 0; i < 150; ++i) buffer.Add();
  for (int i = 0; i < 10; ++i) {
    buffer.Sample(kWeights, sample.view());
    buffer.SetPriorities(sample.ids, std::vector<double>(32, 2.0));
  }
  EXPECT_EQ(buffer.counters().added, 150U);
  EXPECT_EQ(buffer.counters().drawn, 320U);
  EXPECT_EQ(buffer.counters().uniform_fallbacks, 0U);
  EXPECT_EQ(buffer.counters().updated, 320U);
}

}  // namespace
}  // namespace uper::known_pitfalls_test
