#include "uper/base/files/crc32c.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace uper::crc32c_test {
namespace {

// The definition, bit by bit.
std::uint32_t BitByBit(std::span<const std::byte> bytes) {
  std::uint32_t crc = 0xFFFFFFFFU;
  for (const std::byte byte : bytes) {
    crc ^= std::to_integer<std::uint32_t>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82F63B78U : 0U);
  }
  return ~crc;
}

TEST(Crc32cTest, KnownValues) {  // RFC 3720, B.4
  EXPECT_EQ(Crc32c(std::string_view("123456789")), 0xE3069283U);
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8A9136AAU);
  EXPECT_EQ(Crc32c(std::string(32, '\xff')), 0x62A8AB43U);
  EXPECT_EQ(Crc32c(std::string_view("")), 0U);
}

TEST(Crc32cTest, EveryLengthAndSplit) {
  std::vector<std::byte> bytes(70);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(37 * i + 11);
  for (std::size_t length = 0; length <= bytes.size(); ++length) {
    const std::span text = std::span(std::as_const(bytes)).first(length);
    ASSERT_EQ(Crc32c(text), BitByBit(text)) << length;
    for (std::size_t split = 0; split <= length; split += 7) {
      ASSERT_EQ(Crc32c(text.subspan(split), Crc32c(text.first(split))), BitByBit(text));
    }
  }
}

}  // namespace
}  // namespace uper::crc32c_test
