#include "uper/replay/storage/frame_store.h"

#include <gtest/gtest.h>

#include <vector>

#include "uper/base/error.h"

namespace uper {
namespace {

constexpr std::size_t kFrameBytes = 3;

std::vector<std::uint8_t> FrameOf(std::uint8_t value) {
  return std::vector<std::uint8_t>(kFrameBytes, value);
}

FrameStore MakeStore(std::size_t capacity, std::size_t frames, std::size_t depth = 2) {
  return FrameStore({.capacity = capacity,
                     .frame_bytes = kFrameBytes,
                     .stack_depth = depth,
                     .frame_capacity = frames});
}

// First byte of each frame of both stacks: s_tm1 then s_t.
std::vector<int> Gathered(const FrameStore& store, std::uint64_t id) {
  std::vector<std::byte> s_tm1(store.observation_bytes());
  std::vector<std::byte> s_t(store.observation_bytes());
  store.Gather(id, s_tm1, s_t);
  std::vector<int> values;
  for (const auto& stack : {s_tm1, s_t}) {
    for (std::size_t i = 0; i < stack.size(); i += kFrameBytes) {
      EXPECT_EQ(stack[i], stack[i + kFrameBytes - 1]);
      values.push_back(std::to_integer<int>(stack[i]));
    }
  }
  return values;
}

TEST(FrameStack, PadsBehindTheFramesAsDqnZooDoes) {
  FrameStack stack(4);
  const auto frames = [&] { return std::vector(stack.frames().begin(), stack.frames().end()); };
  using Frames = std::vector<std::uint64_t>;
  constexpr std::uint64_t kZ = kZeroFrame;
  EXPECT_EQ(frames(), (Frames{kZ, kZ, kZ, kZ}));
  stack.Push(7);
  EXPECT_EQ(frames(), (Frames{7, kZ, kZ, kZ}));
  stack.Push(8);
  EXPECT_EQ(frames(), (Frames{7, 8, kZ, kZ}));
  for (const std::uint64_t frame : {9, 10, 11}) stack.Push(frame);
  EXPECT_EQ(frames(), (Frames{8, 9, 10, 11}));
  stack.Clear();
  EXPECT_EQ(frames(), (Frames{kZ, kZ, kZ, kZ}));
  EXPECT_THROW(FrameStack(0), Error);
  EXPECT_THROW(FrameStack(9), Error);
}

TEST(FrameStore, ReturnsStacksAcrossTheSeamOfTheRing) {
  FrameStore store = MakeStore(3, 7);
  FrameStack before(2);
  before.Push(store.AddFrame(FrameOf(100)));
  for (std::uint8_t i = 1; i <= 60; ++i) {
    FrameStack after = before;
    after.Push(store.AddFrame(FrameOf(static_cast<std::uint8_t>(100 + i))));
    store.Put(i - 1U, before, after);
    store.CheckValid();
    if (i >= 3) {
      EXPECT_EQ(store.first_valid_id(), i - 3U) << "frames suffice: only the ring evicts";
      for (int id = i - 3; id < i; ++id) {
        const int newest = 100 + id + 1;
        const std::vector<int> first =
            id == 0 ? std::vector{100, 0} : std::vector{newest - 2, newest - 1};
        std::vector<int> expected = first;
        expected.insert(expected.end(), {newest - 1, newest});
        EXPECT_EQ(Gathered(store, static_cast<std::uint64_t>(id)), expected);
      }
    }
    before = after;
  }
}

TEST(FrameStore, OverwritingAUsedFrameInvalidatesItsUsers) {
  FrameStore store = MakeStore(10, 4, 1);
  const auto stack = [](std::uint64_t frame) {
    FrameStack result(1);
    result.Push(frame);
    return result;
  };
  for (std::uint8_t i = 0; i < 4; ++i) store.AddFrame(FrameOf(i));
  store.Put(0, stack(0), stack(1));
  store.Put(1, stack(2), stack(3));
  store.Put(2, stack(0), stack(2));  // frame 0 again, by a later transition
  store.Put(3, stack(1), stack(3));
  EXPECT_EQ(store.first_valid_id(), 0U);
  store.AddFrame(FrameOf(9));  // in the place of frame 0
  EXPECT_EQ(store.first_valid_id(), 3U) << "all up to the newest user of frame 0";
  EXPECT_THROW(Gathered(store, 2), Error);
  EXPECT_EQ(Gathered(store, 3), (std::vector{1, 3}));
  EXPECT_THROW(Gathered(store, 4), Error);
  store.CheckValid();
}

TEST(FrameStore, RefusesFramesThatAreGoneOrNeverWere) {
  FrameStore store = MakeStore(10, 4);
  FrameStack old(2);
  old.Push(store.AddFrame(FrameOf(1)));
  FrameStack fresh(2);
  for (std::uint8_t i = 0; i < 4; ++i) fresh.Push(store.AddFrame(FrameOf(i)));
  EXPECT_THROW(store.Put(0, old, fresh), Error);
  FrameStack future(2);
  future.Push(77);
  EXPECT_THROW(store.Put(0, fresh, future), Error);
  EXPECT_THROW(store.Put(0, FrameStack(3), fresh), Error);
  EXPECT_THROW(store.Put(1, fresh, fresh), Error) << "ids have no gaps";
  store.Put(0, fresh, fresh);
  EXPECT_THROW(store.AddFrame(std::vector<std::uint8_t>(kFrameBytes + 1)), Error);
  EXPECT_THROW(store.Frame(0), Error);
  EXPECT_EQ(store.Frame(4)[0], 3);
}

TEST(FrameStore, RefusesStatesThatDoNotFit) {
  FrameStore store = MakeStore(4, 6);
  FrameStack stack(2);
  for (std::uint8_t i = 0; i < 5; ++i) stack.Push(store.AddFrame(FrameOf(i)));
  store.Put(0, stack, stack);
  const FrameStore::State good = store.GetState(0, 1);
  FrameStore other = MakeStore(4, 6);
  other.SetState(good, 0, 1);
  EXPECT_EQ(Gathered(other, 0), (std::vector{3, 4, 3, 4}));
  std::vector<FrameStore::State> bad(5, good);
  bad[0].stacks[0] = 5;  // the slot of a frame that was not saved
  bad[1].frames.pop_back();
  bad[2].first_id = 1;
  bad[3].next_frame = 3;
  bad[4].stacks.pop_back();
  for (const FrameStore::State& state : bad) EXPECT_THROW(other.SetState(state, 0, 1), Error);
}

TEST(FrameStore, AMillionAtariFramesFitInto7300Megabytes) {
  EXPECT_LE(FrameStore::MemoryBytes({}), 7.3e9);
  EXPECT_GE(FrameStore::MemoryBytes({}), 1e6 * 84 * 84);
}

}  // namespace
}  // namespace uper
