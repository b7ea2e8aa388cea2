#include "uper/metrics/event_encoder.h"

#include <gtest/gtest.h>

#include <vector>

#include "uper/base/files/crc32c.h"
#include "uper/base/replace_new_for_tests.h"
#include "uper/checkpoint/mutations_for_tests.h"

namespace uper {
namespace {

std::string Hex(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    text += "0123456789abcdef"[static_cast<unsigned char>(c) >> 4];
    text += "0123456789abcdef"[static_cast<unsigned char>(c) & 15];
  }
  return text;
}

// RFC 3720, B.4, and the check value of the catalog of CRCs.
TEST(Crc32cTest, KnownAnswers) {
  EXPECT_EQ(Crc32c(""), 0u);
  EXPECT_EQ(Crc32c("123456789"), 0xE3069283u);
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8A9136AAu);
  EXPECT_EQ(Crc32c(std::string(32, '\xff')), 0x62A8AB43u);
}

// Bytes that TensorFlow's own writer wrote: 24 bytes of data, wall time 1.0, version.
TEST(EventEncoderTest, HeaderHasTheKnownBytes) {
  const std::string data =
      std::string("\x09") + std::string("\0\0\0\0\0\0\xf0\x3f", 8) + "\x1a\x0d" + "brain.Event:2";
  const std::string record = EventFileHeader(1.0);
  EXPECT_EQ(record.substr(0, 8), std::string("\x18\0\0\0\0\0\0\0", 8));
  EXPECT_EQ(Hex(record.substr(8, 4)), "a37f4b22");  // the start of every event file
  EXPECT_EQ(record.substr(12, 24), data);
  EXPECT_EQ(record.size(), 40u);
}

TEST(EventEncoderTest, ScalarsAreEncodedAsTheProtocolBufferSays) {
  const std::vector<TaggedScalar> scalars = {{.tag = "loss", .value = 0.5}};
  const std::string record = ScalarEvent(0, 300, scalars);
  const std::string expected = std::string("\x09") + std::string(8, '\0') +  // wall_time
                               "\x10\xac\x02" +                              // step 300
                               "\x2a\x0d" +                                  // summary, 13 bytes
                               "\x0a\x0b" +                                  // value, 11 bytes
                               "\x0a\x04" + "loss" +                         // tag
                               "\x15" + std::string("\0\0\0\x3f", 4);        // simple_value 0.5f
  EXPECT_EQ(Hex(record.substr(12, record.size() - 16)), Hex(expected));
}

TEST(EventEncoderTest, WholeRecordsEndWhereTheLastWholeOneEnds) {
  const std::string file = TfRecord("one") + TfRecord("") + TfRecord("three");
  const std::size_t ends[] = {0, 19, 35, 56};
  for (std::size_t length = 0; length <= file.size(); ++length) {
    std::size_t expected = 0;
    for (const std::size_t end : ends) expected = end <= length ? end : expected;
    EXPECT_EQ(WholeTfRecords(file.substr(0, length)), expected) << length;
  }
  for (std::size_t i = 0; i < file.size(); ++i) {
    std::string damaged = file;
    damaged[i] = static_cast<char>(damaged[i] ^ 4);
    EXPECT_LE(WholeTfRecords(damaged), i) << i;
  }
}

TEST(ReaderFuzzTest, EventFile) {
  const std::vector<TaggedScalar> scalars = {{.tag = "a", .value = 1}};
  const std::string file =
      EventFileHeader(1) + ScalarEvent(2, 3, scalars) + ScalarEvent(4, 5, scalars);
  checkpoint::Fuzz(file,
                   [](const std::string& text) { EXPECT_LE(WholeTfRecords(text), text.size()); });
}

}  // namespace
}  // namespace uper
