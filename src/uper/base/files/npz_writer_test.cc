#include "uper/base/files/npz_writer.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <string>

#include "uper/base/error.h"

namespace uper {
namespace {

namespace fs = std::filesystem;

std::span<const std::byte> BytesOf(std::string_view text) { return std::as_bytes(std::span(text)); }

class NpzWriterTest : public testing::Test {
 protected:
  NpzWriterTest() : folder_(fs::path(testing::TempDir()) / ("npz." + std::to_string(getpid()))) {
    fs::create_directories(folder_);
  }
  ~NpzWriterTest() override { fs::remove_all(folder_); }

  std::string Content() const {
    std::ifstream file(path(), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  fs::path path() const { return folder_ / "a.npz"; }
  std::ptrdiff_t files() const {
    return std::distance(fs::directory_iterator(folder_), fs::directory_iterator());
  }

 private:
  fs::path folder_;
};

// A number in the file.
template <typename T>
T At(const std::string& content, std::size_t offset) {
  T value{};
  std::memcpy(&value, content.substr(offset, sizeof(T)).data(), sizeof(T));
  return value;
}

// One member of the archive, found through the directory.
struct Found {
  std::string name;
  std::string header;  // of the .npy part, without its first ten bytes
  std::string values;
};

Found ReadLocal(const std::string& content, std::size_t offset) {
  EXPECT_EQ(content.substr(offset, 4), std::string("PK\3\4"));
  const auto bytes = At<std::uint32_t>(content, offset + 18);
  const auto name_bytes = At<std::uint16_t>(content, offset + 26);
  const std::string member = content.substr(offset + 30 + name_bytes, bytes);
  EXPECT_EQ(At<std::uint32_t>(content, offset + 14), Crc32(BytesOf(member)));
  EXPECT_EQ(member.substr(0, 8), std::string("\x93NUMPY\x01\x00", 8));
  const auto header_bytes = At<std::uint16_t>(member, 8);
  EXPECT_EQ((10 + header_bytes) % 64, 0);
  return {content.substr(offset + 30, name_bytes), member.substr(10, header_bytes),
          member.substr(10 + header_bytes)};
}

std::vector<Found> ReadAll(const std::string& content) {
  const std::size_t end = content.size() - 22;
  EXPECT_EQ(content.substr(end, 4), std::string("PK\5\6"));
  const auto count = At<std::uint16_t>(content, end + 10);
  std::size_t entry = At<std::uint32_t>(content, end + 16);
  EXPECT_EQ(entry + At<std::uint32_t>(content, end + 12), end);
  std::vector<Found> found;
  for (int i = 0; i < count; ++i) {
    EXPECT_EQ(content.substr(entry, 4), std::string("PK\1\2"));
    found.push_back(ReadLocal(content, At<std::uint32_t>(content, entry + 42)));
    const auto name_bytes = At<std::uint16_t>(content, entry + 28);
    EXPECT_EQ(content.substr(entry + 46, name_bytes), found.back().name);
    entry += 46 + name_bytes;
  }
  EXPECT_EQ(entry, end);
  return found;
}

TEST(Crc32Test, KnownValues) {
  EXPECT_EQ(Crc32({}), 0U);
  EXPECT_EQ(Crc32(BytesOf("123456789")), 0xCBF43926U);
  EXPECT_EQ(Crc32(BytesOf("The quick brown fox jumps over the lazy dog")), 0x414FA339U);
}

TEST(Crc32Test, ContinuesAtEveryLength) {
  const std::string text = "The quick brown fox jumps over the lazy dog";
  for (std::size_t i = 0; i <= text.size(); ++i) {
    const std::uint32_t first = Crc32(BytesOf(text.substr(0, i)));
    EXPECT_EQ(Crc32(BytesOf(text.substr(i)), first), 0x414FA339U) << i;
  }
}

TEST_F(NpzWriterTest, WritesAnArchiveOfArrays) {
  const std::vector<float> floats = {1, 2, 3, 4, 5, 6};
  const std::vector<std::uint8_t> bytes = {7, 8, 9};
  NpzWriter writer(path());
  writer.Add("group/floats", floats, {2, 3});
  writer.Add("bytes", bytes, {3});
  writer.AddNumber("number", 2.5);
  writer.AddText("text", "{}");
  EXPECT_FALSE(fs::exists(path()));
  writer.Commit();

  const std::vector<Found> found = ReadAll(Content());
  ASSERT_EQ(found.size(), 4U);
  EXPECT_EQ(found[0].name, "group/floats.npy");
  EXPECT_TRUE(
      found[0].header.starts_with("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), } "));
  EXPECT_EQ(found[0].header.back(), '\n');
  EXPECT_EQ(At<float>(found[0].values, 20), 6.0F);
  EXPECT_EQ(found[0].values.size(), 24U);
  EXPECT_NE(found[1].header.find("'|u1', 'fortran_order': False, 'shape': (3,), }"),
            std::string::npos);
  EXPECT_EQ(found[1].values, "\x07\x08\x09");
  EXPECT_NE(found[2].header.find("'<f8', 'fortran_order': False, 'shape': (), }"),
            std::string::npos);
  EXPECT_EQ(At<double>(found[2].values, 0), 2.5);
  EXPECT_NE(found[3].header.find("'<U2', 'fortran_order': False, 'shape': (), }"),
            std::string::npos);
  EXPECT_EQ(found[3].values, std::string("{\0\0\0}\0\0\0", 8));
}

TEST_F(NpzWriterTest, IntegersHaveTheirTypes) {
  NpzWriter writer(path());
  writer.AddNumber("a", std::int32_t{-2});
  writer.AddNumber("b", std::int64_t{-3});
  writer.Commit();
  const std::vector<Found> found = ReadAll(Content());
  ASSERT_EQ(found.size(), 2U);
  EXPECT_NE(found[0].header.find("'<i4'"), std::string::npos);
  EXPECT_NE(found[1].header.find("'<i8'"), std::string::npos);
  EXPECT_EQ(At<std::int32_t>(found[0].values, 0), -2);
  EXPECT_EQ(At<std::int64_t>(found[1].values, 0), -3);
}

TEST_F(NpzWriterTest, SameArraysSameBytes) {
  std::string contents[2];
  for (std::string& content : contents) {
    NpzWriter writer(path());
    writer.AddNumber("number", 2.5);
    writer.Commit();
    content = Content();
  }
  EXPECT_EQ(contents[0], contents[1]);
}

TEST_F(NpzWriterTest, NothingAppearsWithoutCommit) {
  {
    NpzWriter writer(path());
    writer.AddNumber("number", 2.5);
  }
  EXPECT_EQ(files(), 0);
}

TEST_F(NpzWriterTest, RefusesWhatItCannotWrite) {
  NpzWriter writer(path());
  const std::vector<float> floats(6);
  EXPECT_THROW(writer.Add("a", floats, {2, 2}), Error);
  EXPECT_THROW(writer.Add("", floats, {6}), Error);
  EXPECT_THROW(writer.AddText("text", ""), Error);
  EXPECT_THROW(writer.AddText("text", "\xC3\xA4"), Error);
  writer.Add("a", floats, {6});
  EXPECT_THROW(writer.Add("a", floats, {6}), Error);
}

TEST_F(NpzWriterTest, RefusesMoreThanAZipArchiveHolds) {
  constexpr std::size_t kBytes = std::size_t{1} << 32;
  void* memory =
      mmap(nullptr, kBytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  NpzWriter writer(path());
  const std::span<const std::uint8_t> huge(static_cast<const std::uint8_t*>(memory), kBytes);
  try {
    writer.Add("huge", huge, {kBytes});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    EXPECT_NE(std::string(error.what()).find("4 GiB"), std::string::npos);
  }
  munmap(memory, kBytes);
}

}  // namespace
}  // namespace uper
