#include "uper/checkpoint/file_system.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>

#include "uper/base/files/files_for_tests.h"
#include "uper/checkpoint/fault_file_system_for_tests.h"

namespace uper::checkpoint {
namespace {

class PosixFileSystemTest : public FolderTest {
 protected:
  FileSystem& files_ = PosixFileSystem();
  std::vector<std::byte> bytes_;
};

TEST_F(PosixFileSystemTest, WritesReadsListsRenamesRemoves) {
  const auto inner = folder_ / "a" / "b";
  ASSERT_EQ(files_.MakeFolder(inner), 0);
  ASSERT_EQ(files_.MakeFolder(inner), 0);
  const std::string text = "content";
  ASSERT_EQ(WriteDurably(files_, inner / "x", BytesOfText(text)), 0);
  ASSERT_EQ(files_.Rename(inner / "x", inner / "y"), 0);
  ASSERT_EQ(files_.SyncFolder(inner), 0);
  std::vector<std::string> names;
  ASSERT_EQ(files_.List(inner, &names), 0);
  EXPECT_EQ(names, std::vector<std::string>{"y"});
  std::uint64_t size = 0;
  EXPECT_EQ(files_.Size(inner / "y", &size), 0);
  EXPECT_EQ(size, 7u);
  EXPECT_EQ(files_.Read(inner / "y", 7, &bytes_), 0);
  EXPECT_EQ(TextOfBytes(bytes_), text);
  EXPECT_EQ(files_.Read(inner / "y", 6, &bytes_), EFBIG);
  EXPECT_EQ(files_.Remove(inner / "y"), 0);
  EXPECT_EQ(files_.Read(inner / "y", 7, &bytes_), ENOENT);
  EXPECT_EQ(files_.Remove(inner / "y"), ENOENT);
  EXPECT_EQ(files_.List(folder_ / "none", &names), ENOENT);
}

TEST_F(PosixFileSystemTest, FollowsNoLinksAndReadsOnlyFiles) {
  PutFile(folder_ / "secret", "s");
  std::filesystem::create_symlink(folder_ / "secret", folder_ / "link");
  EXPECT_EQ(files_.Read(folder_ / "link", 10, &bytes_), ELOOP);
  FileSystem::Handle handle = -1;
  EXPECT_EQ(files_.Create(folder_ / "link", &handle), ELOOP);
  EXPECT_EQ(files_.Read(folder_, 1 << 20, &bytes_), EINVAL);
  ASSERT_EQ(mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(files_.Read(folder_ / "pipe", 10, &bytes_), EINVAL);  // must not hang
  std::uint64_t size = 0;
  EXPECT_EQ(files_.Size(folder_ / "link", &size), EINVAL);
}

TEST_F(PosixFileSystemTest, ErrorsAreReturned) {
  FileSystem::Handle handle = -1;
  EXPECT_EQ(files_.Create(folder_ / "none" / "x", &handle), ENOENT);
  EXPECT_EQ(files_.SyncFolder(folder_ / "none"), ENOENT);
  EXPECT_NE(files_.MakeFolder("/proc/none"), 0);
  EXPECT_EQ(files_.Rename(folder_ / "a", folder_ / "b"), ENOENT);
}

TEST(WriteDurablyTest, SurvivesInterruptionsAndShortWritesAndCleansUpAfterErrors) {
  const std::string text = "0123456789";
  FaultFileSystem probe;
  ASSERT_EQ(WriteDurably(probe, "f", BytesOfText(text)), 0);
  const std::size_t operations = probe.operations();  // create, write, sync, close
  EXPECT_EQ(operations, 4u);
  for (std::size_t at = 0; at < operations; ++at) {
    FaultFileSystem interrupted;
    interrupted.FailAt(at, EINTR);
    EXPECT_EQ(WriteDurably(interrupted, "f", BytesOfText(text)), 0);
    EXPECT_EQ(TextOfBytes(interrupted.Content("f")), text);
    FaultFileSystem failing;
    failing.FailAt(at, EIO);
    EXPECT_EQ(WriteDurably(failing, "f", BytesOfText(text)), EIO);
    EXPECT_TRUE(failing.Paths().empty());
    EXPECT_EQ(failing.open_handles(), 0u);
  }
  FaultFileSystem half;
  half.FailAt(1, FaultFileSystem::kShortWrite);
  EXPECT_EQ(WriteDurably(half, "f", BytesOfText(text)), 0);
  EXPECT_EQ(TextOfBytes(half.Content("f")), text);
}

}  // namespace
}  // namespace uper::checkpoint
