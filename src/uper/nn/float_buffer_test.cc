#include "uper/nn/float_buffer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace uper {
namespace {

TEST(FloatBufferTest, AlignedAndZero) {
  for (const std::size_t size : {1, 15, 1000, 3'000'000}) {
    const FloatBuffer buffer(size);
    EXPECT_EQ(buffer.size(), size);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % 64, 0U);
    EXPECT_TRUE(std::ranges::all_of(buffer.span(), [](float value) { return value == 0; }));
  }
}

TEST(FloatBufferTest, MovesAndMayBeEmpty) {
  FloatBuffer a(3);
  a[1] = 5;
  const FloatBuffer b = std::move(a);
  EXPECT_EQ(b[1], 5);
  EXPECT_EQ(FloatBuffer().size(), 0U);
  EXPECT_EQ(FloatBuffer(0).data(), nullptr);
}

}  // namespace
}  // namespace uper
