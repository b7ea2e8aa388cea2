#include "uper/replay/fields/field_replay.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

namespace uper::field_replay_test {
namespace {

// Fields of 8 and 3 bytes: the number of the transition, and three copies of its lowest byte.
struct Rows {
  explicit Rows(std::size_t count, std::uint64_t first = 0) {
    for (std::uint64_t i = first; i < first + count; ++i) {
      numbers.push_back(i);
      bytes.insert(bytes.end(), 3, static_cast<std::byte>(i));
    }
  }
  std::vector<const std::byte*> pointers() const {
    return {reinterpret_cast<const std::byte*>(numbers.data()), bytes.data()};
  }

  std::vector<std::uint64_t> numbers;
  std::vector<std::byte> bytes;
};

FieldReplay MakeMemory(std::size_t capacity, std::size_t members = 1) {
  return FieldReplay({.replay = {.buffer = {.capacity = capacity}, .masks = {.members = members}},
                      .field_bytes = {8, 3}},
                     /*seed=*/3);
}

struct Batch {
  explicit Batch(std::size_t count)
      : numbers(count),
        bytes(3 * count),
        ids(count),
        probabilities(count),
        weights(count),
        masks(count) {}
  void Sample(FieldReplay& memory) {
    std::byte* const fields[] = {reinterpret_cast<std::byte*>(numbers.data()), bytes.data()};
    memory.Sample({.importance_exponent = 0.5}, {ids, probabilities, weights},
                  {.fields = fields, .masks = masks.data()});
  }
  bool operator==(const Batch&) const = default;

  std::vector<std::uint64_t> numbers;
  std::vector<std::byte> bytes;
  std::vector<std::uint64_t> ids;
  std::vector<double> probabilities;
  std::vector<float> weights;
  std::vector<std::uint64_t> masks;
};

TEST(FieldReplayTest, RowsComeBackById) {
  FieldReplay memory = MakeMemory(20);
  std::uint64_t added = 0;
  for (const std::size_t count : {1, 7, 20, 3, 45}) {  // the last ones are more than fit
    EXPECT_EQ(memory.Add(Rows(count, added).pointers(), count), added);
    added += count;
    memory.CheckValid();
    Batch batch(64);
    batch.Sample(memory);
    for (std::size_t i = 0; i < 64; ++i) {
      ASSERT_EQ(batch.numbers[i], batch.ids[i]);
      ASSERT_EQ(batch.bytes[3 * i + 2], static_cast<std::byte>(batch.ids[i]));
    }
  }
  EXPECT_EQ(memory.buffer().first_id(), added - 20);
}

TEST(FieldReplayTest, ManyAtOnceAreAsOneByOne) {
  FieldReplay together = MakeMemory(13, 10), apart = MakeMemory(13, 10);
  std::vector<double> priorities;
  for (int i = 0; i < 31; ++i) priorities.push_back(i % 5 == 4 ? -1 : 0.5 + i % 7);
  const Rows rows(31);
  together.Add(rows.pointers(), 31, priorities);
  for (std::size_t i = 0; i < 31; ++i) {
    apart.Add(Rows(1, i).pointers(), 1, std::span(priorities).subspan(i, 1));
  }
  EXPECT_EQ(together.buffer().counters(), apart.buffer().counters());
  EXPECT_EQ(together.buffer().largest_priority(), apart.buffer().largest_priority());
  Batch a(100), b(100);
  a.Sample(together);
  b.Sample(apart);
  EXPECT_EQ(a, b);
  together.CheckValid();
}

TEST(FieldReplayTest, SavedStateContinuesBitForBit) {
  FieldReplay memory = MakeMemory(20, 5);
  memory.Add(Rows(33).pointers(), 33);
  Batch warm(10);
  warm.Sample(memory);
  memory.mutable_buffer().SetPriorities(warm.ids, warm.probabilities);
  const std::vector<std::byte> state = StateBytes([&](StateWriter& out) { memory.Save(out); });
  FieldReplay copy = MakeMemory(20, 5);
  ReadStateBytes(state, [&](StateReader& in) { copy.Load(in); });
  for (FieldReplay* one : {&memory, &copy}) one->Add(Rows(4, 33).pointers(), 4);
  Batch a(50), b(50);
  a.Sample(memory);
  b.Sample(copy);
  EXPECT_EQ(a, b);
  FieldReplay smaller = MakeMemory(19, 5);
  EXPECT_THROW(ReadStateBytes(state, [&](StateReader& in) { smaller.Load(in); }), Error);
}

TEST(FieldReplayTest, FramesAreStoredOnce) {
  FieldReplay memory(
      {.replay = {.buffer = {.capacity = 10}},
       .field_bytes = {8, 3},
       .frames =
           FrameStoreOptions{
               .capacity = 10, .frame_bytes = 4, .stack_depth = 2, .frame_capacity = 8}},
      3);
  FrameStack stack(2);
  for (std::uint8_t i = 1; i <= 20; ++i) {
    const FrameStack before = stack;
    const std::uint8_t pixels[] = {i, i, i, i};
    stack.Push(memory.AddFrame(pixels));
    if (i == 1) continue;
    const FrameStacks stacks{before, stack};
    memory.Add(Rows(1, i).pointers(), 1, {}, {&stacks, 1});
    memory.CheckValid();
  }
  ASSERT_EQ(memory.size(), 6U);  // eight frames are in memory
  const std::uint64_t id = memory.buffer().next_id() - 1;
  std::byte s_tm1[8], s_t[8];
  std::uint64_t number = 0;
  std::byte bytes[3];
  std::byte* const fields[] = {reinterpret_cast<std::byte*>(&number), bytes};
  memory.Gather({&id, 1}, {.fields = fields, .s_tm1 = s_tm1, .s_t = s_t});
  EXPECT_EQ(number, 20U);
  EXPECT_EQ(s_tm1[0], std::byte{18});
  EXPECT_EQ(s_t[7], std::byte{20});
}

TEST(FieldReplayTest, ComponentsGiveThePriorities) {
  FieldReplay memory(
      {.replay = {.buffer = {.capacity = 4}}, .field_bytes = {8, 3}, .keep_components = true}, 3);
  memory.Add(Rows(4).pointers(), 4);
  const std::uint64_t ids[] = {1, 2, 99};
  const Components components[] = {{.epistemic = 1,
                                    .aleatoric = 2,
                                    .target_distance_sq = 0,
                                    .epistemic_delta = 4,
                                    .td_error = 3},
                                   {.epistemic = 5,
                                    .aleatoric = 0,
                                    .target_distance_sq = 0,
                                    .epistemic_delta = 6,
                                    .td_error = 7},
                                   {}};
  EXPECT_EQ(
      memory.components().Set(memory.mutable_buffer(), ids, components, PriorityRule::kTd, {}),
      (UpdateCounts{.updated = 2, .evicted = 0, .invalid = 1}));
  EXPECT_EQ(memory.buffer().Priority(1), 3);
  EXPECT_EQ(
      memory.components().Derive(memory.mutable_buffer(), PriorityRule::kTotalDelta, {}).updated,
      2U);
  EXPECT_EQ(memory.buffer().Priority(1), 6);
  EXPECT_EQ(memory.buffer().Priority(2), 6);
  memory.Add(Rows(2).pointers(), 2);  // the ids 0 and 1 leave, and their slots are clean
  EXPECT_EQ(memory.components().Derive(memory.mutable_buffer(), PriorityRule::kTd, {}).updated, 1U);
}

}  // namespace
}  // namespace uper::field_replay_test
