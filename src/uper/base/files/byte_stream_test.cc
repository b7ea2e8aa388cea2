#include "uper/base/files/byte_stream.h"

#include <gtest/gtest.h>

#include <limits>

#include "uper/base/error.h"

namespace uper {
namespace {

std::vector<std::byte> Bytes(std::initializer_list<int> values) {
  std::vector<std::byte> bytes;
  for (const int value : values) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}

template <typename Action>
void ExpectCorrupt(const Action& action) {
  try {
    action();
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kCorrupt) << error.what();
  }
}

TEST(ByteStreamTest, WritesLittleEndianWithoutPadding) {
  std::vector<std::byte> bytes;
  ByteWriter writer(bytes);
  writer.Write(true);
  writer.Write<std::uint32_t>(0x01020304);
  writer.WriteText("ab");
  EXPECT_EQ(bytes, Bytes({1, 4, 3, 2, 1, 2, 0, 0, 0, 0, 0, 0, 0, 'a', 'b'}));
}

TEST(ByteStreamTest, ReadsBackWhatWasWritten) {
  std::vector<std::byte> bytes;
  ByteWriter writer(bytes);
  writer.Write(false);
  writer.Write<std::int8_t>(-5);
  writer.Write(std::numeric_limits<std::uint64_t>::max());
  writer.Write(-0.1);
  writer.Write(2.5f);
  writer.WriteText("");
  writer.WriteBlock(Bytes({7, 8, 9}));
  ByteReader reader(bytes);
  EXPECT_FALSE(reader.Read<bool>());
  EXPECT_EQ(reader.Read<std::int8_t>(), -5);
  EXPECT_EQ(reader.Read<std::uint64_t>(), std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(reader.Read<double>(), -0.1);
  EXPECT_EQ(reader.Read<float>(), 2.5f);
  EXPECT_EQ(reader.ReadText(), "");
  EXPECT_EQ(reader.remaining(), 11u);
  const auto block = reader.ReadBlock();
  EXPECT_EQ(std::vector(block.begin(), block.end()), Bytes({7, 8, 9}));
  EXPECT_NO_THROW(reader.ExpectEnd());
}

TEST(ByteStreamTest, AppendsToWhatIsThere) {
  std::vector<std::byte> bytes = Bytes({1});
  ByteWriter(bytes).Write<std::uint8_t>(2);
  EXPECT_EQ(bytes, Bytes({1, 2}));
}

TEST(ByteStreamTest, RefusesWhatIsTooShort) {
  const auto three = Bytes({1, 2, 3});
  ExpectCorrupt([&] { ByteReader(three).Read<std::uint32_t>(); });
  ByteReader reader(three);
  reader.Read<std::uint16_t>();
  ExpectCorrupt([&] { reader.Read<std::uint16_t>(); });
  EXPECT_EQ(reader.remaining(), 1u) << "a failed read takes nothing";
  ExpectCorrupt([] { ByteReader({}).Read<bool>(); });
}

TEST(ByteStreamTest, RefusesLengthsBeyondTheEnd) {
  std::vector<std::byte> bytes;
  ByteWriter(bytes).WriteText("abc");
  bytes.pop_back();
  ExpectCorrupt([&] { ByteReader(bytes).ReadText(); });
  std::vector<std::byte> huge;
  ByteWriter(huge).Write(std::numeric_limits<std::uint64_t>::max());
  ExpectCorrupt([&] { ByteReader(huge).ReadBlock(); });
}

TEST(ByteStreamTest, RefusesWhatIsTooLong) {
  const auto bytes = Bytes({1, 2});
  ByteReader reader(bytes);
  reader.Read<std::uint8_t>();
  ExpectCorrupt([&] { reader.ExpectEnd(); });
}

TEST(ByteStreamTest, ChecksRanges) {
  std::vector<std::byte> bytes;
  ByteWriter writer(bytes);
  for (const int value : {-1, 0, 9, 10}) writer.Write(value);
  writer.Write(std::numeric_limits<double>::quiet_NaN());
  ByteReader reader(bytes);
  ExpectCorrupt([&] { reader.ReadInRange(0, 9); });
  EXPECT_EQ(reader.ReadInRange(0, 9), 0);
  EXPECT_EQ(reader.ReadInRange(0, 9), 9);
  ExpectCorrupt([&] { reader.ReadInRange(0, 9); });
  ExpectCorrupt([&] { reader.ReadInRange(-1e300, 1e300); });
}

TEST(ByteStreamTest, BoolIsZeroOrOne) {
  const auto bytes = Bytes({2});
  ExpectCorrupt([&] { ByteReader(bytes).Read<bool>(); });
}

}  // namespace
}  // namespace uper
