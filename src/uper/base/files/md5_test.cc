#include "uper/base/files/md5.h"

#include <gtest/gtest.h>

#include <string_view>

namespace uper {
namespace {

std::string TextOf(std::string_view text) { return Md5Text(Md5(std::as_bytes(std::span(text)))); }

TEST(Md5Test, ValuesOfTheStandard) {
  EXPECT_EQ(TextOf(""), "d41d8cd98f00b204e9800998ecf8427e");
  EXPECT_EQ(TextOf("a"), "0cc175b9c0f1b6a831c399e269772661");
  EXPECT_EQ(TextOf("abc"), "900150983cd24fb0d6963f7d28e17f72");
  EXPECT_EQ(TextOf("message digest"), "f96b697d7cb7938d525a2f31aaf161d0");
  EXPECT_EQ(TextOf("abcdefghijklmnopqrstuvwxyz"), "c3fcd3d76192e4007dfb496cca67e13b");
  EXPECT_EQ(
      TextOf("12345678901234567890123456789012345678901234567890123456789012345678901234567890"),
      "57edf4a22be3c955ac49da2e2107b67a");
}

// Lengths around the end of a block, where the padding needs one or two of them. Values of md5sum.
TEST(Md5Test, LengthsAroundABlock) {
  EXPECT_EQ(TextOf(std::string(55, 'x')), "04364420e25c512fd958a70738aa8f72");
  EXPECT_EQ(TextOf(std::string(56, 'x')), "668a72d5ba17f08e62dabcafad6db14b");
  EXPECT_EQ(TextOf(std::string(64, 'x')), "c1bb4f81d892b2d57947682aeb252456");
  EXPECT_EQ(TextOf(std::string(119, 'x')), "ab347a5f68c8a443cfcddc633f12c24f");
  EXPECT_EQ(TextOf(std::string(1000, 'x')), "398533d48111e9f664b1f64cb10c4b63");
}

TEST(Md5Test, EveryBitCounts) {
  std::string text(200, 'x');
  const std::string before = TextOf(text);
  for (const std::size_t i : {0, 63, 64, 127, 128, 199}) {
    text[i] ^= 1;
    EXPECT_NE(TextOf(text), before) << i;
    text[i] ^= 1;
  }
}

}  // namespace
}  // namespace uper
