#include "uper/cli/video/channel_stack.h"

#include <gtest/gtest.h>

namespace uper {
namespace {

using Bytes = std::vector<std::byte>;

Bytes Of(std::initializer_list<int> values) {
  Bytes bytes;
  for (const int value : values) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}

Bytes Seen(const ObservationStack& stack) {
  Bytes out(stack.bytes());
  stack.Write(out);
  return out;
}

TEST(ObservationStackTest, OldestFirstAndZerosBehind) {
  ObservationStack stack({.name = "x", .actions = 1, .frame_stack = 3});  // one cell
  stack.Push(Of({1}));
  EXPECT_EQ(Seen(stack), Of({1, 0, 0}));
  stack.Push(Of({2}));
  EXPECT_EQ(Seen(stack), Of({1, 2, 0}));
  stack.Push(Of({3}));
  stack.Push(Of({4}));
  EXPECT_EQ(Seen(stack), Of({2, 3, 4}));
  stack.Clear();
  stack.Push(Of({5}));
  EXPECT_EQ(Seen(stack), Of({5, 0, 0}));
}

TEST(ObservationStackTest, FramesAreTheChannelsOfOnePicture) {
  ObservationStack stack({.name = "x", .actions = 1, .width = 2, .channels = 2, .frame_stack = 2});
  stack.Push(Of({1, 2, 3, 4}));
  stack.Push(Of({5, 6, 7, 8}));
  EXPECT_EQ(Seen(stack), Of({1, 2, 5, 6, 3, 4, 7, 8}));
}

TEST(ObservationStackTest, OneFrameIsItself) {
  ObservationStack stack({.name = "x", .actions = 1, .width = 3});
  stack.Push(Of({9, 8, 7}));
  stack.Push(Of({1, 2, 3}));
  EXPECT_EQ(Seen(stack), Of({1, 2, 3}));
}

}  // namespace
}  // namespace uper
