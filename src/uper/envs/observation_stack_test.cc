#include "uper/envs/observation_stack.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace uper {
namespace {

using Bytes = std::vector<std::byte>;

Bytes Of(std::initializer_list<int> values) {
  Bytes bytes;
  for (const int value : values) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}

Bytes Seen(const ObservationStack& stack) { return {stack.bytes().begin(), stack.bytes().end()}; }

void Put(ObservationStack& stack, std::initializer_list<int> values) {
  const Bytes bytes = Of(values);
  ASSERT_EQ(bytes.size(), stack.next().size());
  std::copy(bytes.begin(), bytes.end(), stack.next().begin());
}
void Start(ObservationStack& stack, std::initializer_list<int> values) {
  Put(stack, values);
  stack.Start();
}
void Push(ObservationStack& stack, std::initializer_list<int> values) {
  Put(stack, values);
  stack.Push();
}

TEST(ObservationStackTest, OldestFirstAndZerosBehind) {
  ObservationStack stack({.name = "x", .actions = 1, .frame_stack = 3});  // one cell
  Start(stack, {1});
  EXPECT_EQ(Seen(stack), Of({1, 0, 0}));
  Push(stack, {2});
  EXPECT_EQ(Seen(stack), Of({1, 2, 0}));
  Push(stack, {3});
  Push(stack, {4});
  EXPECT_EQ(Seen(stack), Of({2, 3, 4}));
  Start(stack, {5});
  EXPECT_EQ(Seen(stack), Of({5, 0, 0}));
}

TEST(ObservationStackTest, TheNextObservationChangesNothingBeforeItIsPushed) {
  ObservationStack stack({.name = "x", .actions = 1, .frame_stack = 2});
  Start(stack, {1});
  Push(stack, {2});
  Put(stack, {3});
  EXPECT_EQ(Seen(stack), Of({1, 2}));
  stack.Push();
  EXPECT_EQ(Seen(stack), Of({2, 3}));
}

TEST(ObservationStackTest, PlanesFollowEachOther) {
  ObservationStack stack({.name = "x", .actions = 1, .width = 2, .channels = 2, .frame_stack = 2});
  Start(stack, {1, 2, 3, 4});
  Push(stack, {5, 6, 7, 8});
  EXPECT_EQ(Seen(stack), Of({1, 2, 3, 4, 5, 6, 7, 8}));
}

TEST(ObservationStackTest, ChannelsLastIsOneImage) {
  ObservationStack stack({.name = "x", .actions = 1, .width = 2, .channels = 2, .frame_stack = 2},
                         StackLayout::kChannelsLast);
  Start(stack, {1, 2, 3, 4});
  EXPECT_EQ(Seen(stack), Of({1, 2, 0, 0, 3, 4, 0, 0}));
  Push(stack, {5, 6, 7, 8});
  EXPECT_EQ(Seen(stack), Of({1, 2, 5, 6, 3, 4, 7, 8}));
}

TEST(ObservationStackTest, OneFrameIsItself) {
  ObservationStack stack({.name = "x", .actions = 1, .width = 3});
  Start(stack, {9, 8, 7});
  Push(stack, {1, 2, 3});
  EXPECT_EQ(Seen(stack), Of({1, 2, 3}));
}

}  // namespace
}  // namespace uper
