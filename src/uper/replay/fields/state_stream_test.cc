#include "uper/replay/fields/state_stream.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "uper/base/error.h"

namespace uper::state_stream_test {
namespace {

std::span<const std::byte> BytesOf(std::string_view text) { return std::as_bytes(std::span(text)); }

std::vector<std::byte> Example() {
  return StateBytes([](StateWriter& out) {
    out.Block("first", BytesOf("abc"));
    out.Begin("second", 6);
    out.Append(BytesOf("de"));
    out.Append(BytesOf("fghi"));
    out.End();
    out.Block("empty", {});
  });
}

void ReadExample(StateReader& in) {
  const std::vector<std::byte> first = in.Block("first", 100);
  if (first.size() != 3 || in.Begin("second") != 6) in.Fail("has blocks of other lengths");
  std::string text(6, ' ');
  in.Read(std::as_writable_bytes(std::span(text)).first(1));
  in.Read(std::as_writable_bytes(std::span(text)).subspan(1));
  in.End();
  EXPECT_EQ(text, "defghi");
  EXPECT_TRUE(in.Block("empty", 0).empty());
}

ErrorKind KindOf(const std::vector<std::byte>& bytes) {
  try {
    ReadStateBytes(bytes, ReadExample);
  } catch (const Error& error) {
    return error.kind();
  }
  return ErrorKind::kInternal;
}

TEST(StateStreamTest, ReadsWhatWasWritten) { ReadStateBytes(Example(), ReadExample); }

TEST(StateStreamTest, EveryFlippedBitIsNoticed) {
  const std::vector<std::byte> good = Example();
  for (std::size_t i = 0; i < 8 * good.size(); ++i) {
    std::vector<std::byte> bad = good;
    bad[i / 8] ^= static_cast<std::byte>(1U << (i % 8));
    ASSERT_EQ(KindOf(bad), ErrorKind::kCorrupt) << "bit " << i;
  }
}

TEST(StateStreamTest, EveryCutAndEveryAppendixIsNoticed) {
  std::vector<std::byte> bytes = Example();
  bytes.push_back(std::byte{0});
  EXPECT_EQ(KindOf(bytes), ErrorKind::kCorrupt);
  for (std::size_t length = 0; length + 1 < bytes.size(); ++length) {
    ASSERT_EQ(KindOf({bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(length)}),
              ErrorKind::kCorrupt);
  }
}

TEST(StateStreamTest, BlocksHaveLimitsAndNames) {
  const auto refuses = [](const std::function<void(StateReader&)>& read) {
    EXPECT_THROW(ReadStateBytes(Example(), read), Error);
  };
  refuses([](StateReader& in) { in.Block("first", 2); });
  refuses([](StateReader& in) { in.Block("other", 100); });
  refuses([](StateReader& in) {
    in.Begin("first");
    in.End();
  });
  refuses([](StateReader& in) { in.Block("first", 3); });  // and leaves the others
}

TEST(StateStreamTest, Files) {
  const std::filesystem::path path = std::filesystem::path(testing::TempDir()) / "uper_state";
  WriteStateFile(path, [](StateWriter& out) {
    out.Block("first", BytesOf("abc"));
    out.Block("second", BytesOf("defghi"));
    out.Block("empty", {});
  });
  ReadStateFile(path, ReadExample);
  // A failure while writing leaves the older file as it was, and nothing else.
  EXPECT_THROW(WriteStateFile(path,
                              [](StateWriter& out) {
                                out.Begin("half", 10);
                                out.End();
                              }),
               Error);
  ReadStateFile(path, ReadExample);
  std::filesystem::remove(path);
  try {
    ReadStateFile(path, ReadExample);
    ADD_FAILURE() << "read a file that is not there";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kMissingData);
  }
}

}  // namespace
}  // namespace uper::state_stream_test
