#include "uper/replay/shared_replay.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstring>
#include <latch>
#include <thread>
#include <vector>

#include "uper/base/error.h"
#include "uper/replay/replay_for_tests.h"

namespace uper::shared_replay_test {
namespace {

constexpr int kWriters = 4;
constexpr WeightOptions kWeights{.importance_exponent = 0.5};

std::uint64_t Mix(std::uint64_t x) {
  x = (x ^ (x >> 33)) * 0xFF51AFD7ED558CCDU;
  return (x ^ (x >> 33)) * 0xC4CEB9FE1A85EC53U;
}

// An observation of eight words that can be checked by itself.
using Words = std::array<std::uint64_t, 8>;
Words WordsFor(std::uint64_t tag) {
  Words words;
  words[0] = tag;
  for (std::size_t i = 1; i < words.size(); ++i) words[i] = Mix(words[i - 1] + i);
  return words;
}

// A transition in which all parts follow from its tag.
struct TaggedTransition {
  explicit TaggedTransition(std::uint64_t tag) : s_tm1(WordsFor(tag)), s_t(WordsFor(~tag)) {}

  Transition<WholeObservations::Observation> view() const {
    const std::uint64_t tag = s_tm1[0];
    return {std::as_bytes(std::span(s_tm1)), static_cast<std::int32_t>(tag % 1000),
            static_cast<double>(tag % 77), 0.5, std::as_bytes(std::span(s_t))};
  }

  Words s_tm1, s_t;
};

::testing::AssertionResult RowIsConsistent(const ReplayBatch& batch, std::size_t row) {
  Words s_tm1;
  Words s_t;
  std::memcpy(s_tm1.data(), &batch.s_tm1[row * sizeof(Words)], sizeof(Words));
  std::memcpy(s_t.data(), &batch.s_t[row * sizeof(Words)], sizeof(Words));
  const std::uint64_t tag = s_tm1[0];
  if (s_tm1 != WordsFor(tag) || s_t != WordsFor(~tag)) {
    return ::testing::AssertionFailure() << "torn observation " << tag;
  }
  if (batch.a_tm1[row] != static_cast<std::int32_t>(tag % 1000) ||
      batch.r_t[row] != static_cast<float>(tag % 77)) {
    return ::testing::AssertionFailure() << "parts of different transitions " << tag;
  }
  return ::testing::AssertionSuccess();
}

SharedReplay<WholeObservations> MakeRecords(std::size_t capacity) {
  return SharedReplay<WholeObservations>(
      WholeReplay({.buffer = SmallBuffer(capacity, 0.6, 0.01), .masks = {.members = 10}},
                  WholeObservations(capacity, sizeof(Words)), ReplayStreams(1)));
}

TEST(SharedReplayConcurrent, WritersAndASamplerSeeWholeTransitions) {
  const std::uint64_t per_writer = Scaled(150'000, 10'000);
  SharedReplay<WholeObservations> shared = MakeRecords(500);
  std::atomic<int> running = kWriters;
  std::latch start(kWriters);
  std::vector<std::thread> writers;
  writers.reserve(kWriters);
  for (int w = 0; w < kWriters; ++w) {
    writers.emplace_back([&, w] {
      start.arrive_and_wait();  // all start together, so that writers overlap
      for (std::uint64_t i = 0; i < per_writer; ++i) {
        const TaggedTransition transition(Mix(i * kWriters + static_cast<std::uint64_t>(w)));
        i % 3 == 0 ? shared.Add(transition.view(), 0.1 + static_cast<double>(i % 5))
                   : shared.Add(transition.view());
      }
      --running;
    });
  }
  ReplayBatch batch(32, 2 * sizeof(Words) / 2);
  std::vector<double> priorities(32);
  std::uint64_t updates = 0;
  std::uint64_t torn = 0;
  while (running > 0 || updates == 0) {
    if (!shared.TrySample(kWeights, 32, batch.view())) continue;
    for (std::size_t row = 0; row < 32; ++row) {
      torn += RowIsConsistent(batch, row) ? 0 : 1;
      priorities[row] = static_cast<double>(batch.ids[row] % 7);
    }
    const UpdateCounts counts = shared.SetPriorities(batch.ids, priorities);
    EXPECT_EQ(counts.updated + counts.evicted, 32U);
    updates += 32;
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(torn, 0U);
  const ReplayCounters counters = shared.counters();
  EXPECT_EQ(counters.added, kWriters * per_writer);
  EXPECT_EQ(counters.drawn, updates);
  EXPECT_EQ(counters.updated + counters.updates_of_evicted, updates);
  shared.WithLock([](WholeReplay& replay) { replay.CheckValid(); });
}

// Every writer is an environment with its own stacks; frame content is (writer, number).
TEST(SharedReplayConcurrent, FrameStacksOfWritersNeverMix) {
  constexpr std::size_t kCapacity = 400;
  constexpr std::size_t kBytes = sizeof(std::uint32_t);
  const std::uint64_t per_writer = Scaled(150'000, 10'000);
  SharedReplay<FrameStore> shared(
      FrameReplay({.buffer = SmallBuffer(kCapacity, 0.6, 0.01), .masks = {}},
                  FrameStore({.capacity = kCapacity, .frame_bytes = kBytes, .frame_capacity = 430}),
                  ReplayStreams(1)));
  std::atomic<int> running = kWriters;
  std::latch start(kWriters);
  std::atomic<std::uint64_t> late = 0;
  std::vector<std::thread> writers;
  writers.reserve(kWriters);
  for (int w = 0; w < kWriters; ++w) {
    writers.emplace_back([&, w] {
      FrameStack stack(4);
      start.arrive_and_wait();
      for (std::uint32_t i = 0; i < per_writer; ++i) {
        const std::uint32_t content = static_cast<std::uint32_t>(w + 1) << 24 | i;
        std::array<std::uint8_t, kBytes> pixels;
        std::memcpy(pixels.data(), &content, kBytes);
        const FrameStack before = stack;
        stack.Push(shared.AddFrame(pixels));
        try {
          shared.Add({before, w, 0, 0.9, stack});
        } catch (const Error&) {  // the other writers replaced all frames meanwhile
          ++late;
          stack.Clear();
        }
      }
      --running;
    });
  }
  ReplayBatch batch(16, 4 * kBytes);
  std::uint64_t wrong = 0;
  std::uint64_t seen = 0;
  while (running > 0 || seen == 0) {
    if (!shared.TrySample(kWeights, 1, batch.view())) continue;
    for (std::size_t row = 0; row < 16; ++row, ++seen) {
      std::array<std::uint32_t, 4> frames;
      std::memcpy(frames.data(), &batch.s_t[row * sizeof(frames)], sizeof(frames));
      std::uint32_t former = 0;
      for (const std::uint32_t frame : frames) {
        if (frame == 0) break;
        wrong += frame >> 24 != static_cast<std::uint32_t>(batch.a_tm1[row] + 1) ? 1 : 0;
        wrong += former != 0 && frame != former + 1 ? 1 : 0;
        former = frame;
      }
    }
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(wrong, 0U);
  EXPECT_EQ(shared.counters().added + late, kWriters * per_writer);
  shared.WithLock([](FrameReplay& replay) { replay.CheckValid(); });
}

TEST(SharedReplayConcurrent, AnExceptionLeavesTheMemoryUsable) {
  SharedReplay<WholeObservations> shared = MakeRecords(50);
  std::vector<std::thread> writers;
  writers.reserve(kWriters);
  std::atomic<int> refused = 0;
  for (int w = 0; w < kWriters; ++w) {
    writers.emplace_back([&] {
      for (std::uint64_t i = 0; i < 200; ++i) {
        try {
          const TaggedTransition whole(i);
          Transition<WholeObservations::Observation> transition = whole.view();
          if (i % 2 == 0) transition.s_t = transition.s_t.first(3);
          shared.Add(transition);
        } catch (const Error&) {
          ++refused;
        }
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(refused, kWriters * 100);
  EXPECT_EQ(shared.counters().added, kWriters * 100U);
  ReplayBatch batch(32, sizeof(Words));
  ASSERT_TRUE(shared.TrySample(kWeights, 1, batch.view()));
  for (std::size_t row = 0; row < 32; ++row) EXPECT_TRUE(RowIsConsistent(batch, row));
}

TEST(SharedReplay, SamplesOnlyWhenThereIsEnough) {
  SharedReplay<WholeObservations> shared = MakeRecords(50);
  ReplayBatch batch(4, sizeof(Words));
  EXPECT_FALSE(shared.TrySample(kWeights, 1, batch.view()));
  shared.Add(TaggedTransition(1).view());
  EXPECT_FALSE(shared.TrySample(kWeights, 2, batch.view()));
  EXPECT_TRUE(shared.TrySample(kWeights, 1, batch.view()));
  EXPECT_THROW(shared.TrySample(kWeights, 0, batch.view()), Error);
  EXPECT_EQ(shared.size(), 1U);
}

}  // namespace
}  // namespace uper::shared_replay_test
