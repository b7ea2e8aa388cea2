#include "uper/base/files/atomic_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <iterator>
#include <string>

#include "uper/base/error_for_tests.h"

namespace uper {
namespace {

namespace fs = std::filesystem;

std::string Content(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::ptrdiff_t FilesIn(const fs::path& folder) {
  return std::distance(fs::directory_iterator(folder), fs::directory_iterator());
}

class AtomicFileTest : public testing::Test {
 protected:
  AtomicFileTest() {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::temp_directory_path() /
              ("uper_" + std::string(info->name()) + "." + std::to_string(getpid()));
    fs::create_directories(folder_);
  }
  ~AtomicFileTest() override { fs::remove_all(folder_); }

  fs::path folder_;
};

TEST_F(AtomicFileTest, AppearsWithCommitOnly) {
  const fs::path path = folder_ / "a";
  AtomicFile file(path);
  file.Write("one ");
  file.Write("two");
  EXPECT_FALSE(fs::exists(path));
  file.Commit();
  EXPECT_EQ(Content(path), "one two");
  EXPECT_EQ(file.path(), path);
  EXPECT_EQ(FilesIn(folder_), 1);
}

TEST_F(AtomicFileTest, WithoutCommitNothingRemains) {
  {
    AtomicFile(folder_ / "a").Write("lost");
  }
  EXPECT_EQ(FilesIn(folder_), 0);
}

TEST_F(AtomicFileTest, WithoutCommitTheOldContentStays) {
  const fs::path path = folder_ / "a";
  WriteFileAtomically(path, "old");
  {
    AtomicFile(path).Write("new");
  }
  EXPECT_EQ(Content(path), "old");
  WriteFileAtomically(path, "new");
  EXPECT_EQ(Content(path), "new");
  EXPECT_EQ(FilesIn(folder_), 1);
}

TEST_F(AtomicFileTest, LargeAndBinaryContentSurvives) {
  // Three times the buffer, in pieces that do not divide it, with every byte value.
  std::string content(200001, '\0');
  for (std::size_t i = 0; i < content.size(); ++i) content[i] = static_cast<char>(i * 7);
  AtomicFile file(folder_ / "a");
  for (std::size_t i = 0; i < content.size(); i += 777) {
    file.Write(std::string_view(content).substr(i, 777));
  }
  file.Commit();
  EXPECT_TRUE(Content(folder_ / "a") == content);
  WriteFileAtomically(folder_ / "empty", "");
  EXPECT_EQ(fs::file_size(folder_ / "empty"), 0u);
}

TEST_F(AtomicFileTest, FileNameWithoutFolderIsInTheCurrentOne) {
  const fs::path before = fs::current_path();
  fs::current_path(folder_);
  WriteFileAtomically("plain", "x");
  fs::current_path(before);
  EXPECT_EQ(Content(folder_ / "plain"), "x");
}

TEST_F(AtomicFileTest, BadPathsAreUsageErrors) {
  WriteFileAtomically(folder_ / "file", "x");
  const Thrown below_file = Catch([&] { AtomicFile(folder_ / "file" / "child"); });
  EXPECT_EQ(below_file.kind, ErrorKind::kUsage);
  EXPECT_NE(below_file.message.find((folder_ / "file").string()), std::string::npos);
  EXPECT_EQ(Catch([&] { AtomicFile(folder_ / "missing" / "child"); }).kind, ErrorKind::kUsage);
}

TEST_F(AtomicFileTest, AFolderInTheWayIsAUsageErrorAndLeavesNoRest) {
  fs::create_directories(folder_ / "taken" / "inside");
  EXPECT_EQ(Catch([&] { WriteFileAtomically(folder_ / "taken", "x"); }).kind, ErrorKind::kUsage);
  EXPECT_TRUE(fs::exists(folder_ / "taken" / "inside"));
  EXPECT_EQ(FilesIn(folder_), 1);
}

TEST_F(AtomicFileTest, FullDiskIsAResourceErrorAndTheOldContentStays) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  const fs::path path = folder_ / "a";
  WriteFileAtomically(path, "old");
  // Every write to /dev/full fails as on a full disk, so the temporary name becomes a link to it.
  fs::create_symlink("/dev/full", path.string() + ".tmp." + std::to_string(getpid()));
  const Thrown thrown = Catch([&] { WriteFileAtomically(path, "new"); });
  EXPECT_EQ(thrown.kind, ErrorKind::kResources);
  EXPECT_NE(thrown.message.find("free some space"), std::string::npos);
  EXPECT_EQ(Content(path), "old");
  EXPECT_EQ(FilesIn(folder_), 1);
}

// Files of this process may not grow beyond `bytes` while it lives; the write then fails with EFBIG
// instead of a signal.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limited = {.rlim_cur = bytes, .rlim_max = before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limited);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit before_{};
  void (*handler_)(int);
};

TEST_F(AtomicFileTest, AFailedWriteLeavesTheOldContent) {
  const fs::path path = folder_ / "a";
  WriteFileAtomically(path, "old");
  const std::string large(300000, 'x');
  Thrown thrown;
  {
    const FileSizeLimit limit(100000);
    thrown = Catch([&] { WriteFileAtomically(path, large); });
  }
  EXPECT_EQ(thrown.kind, ErrorKind::kResources);
  EXPECT_NE(thrown.message.find("cannot write"), std::string::npos) << thrown.message;
  EXPECT_EQ(Content(path), "old");
  EXPECT_EQ(FilesIn(folder_), 1);
}

TEST_F(AtomicFileTest, OverwritesWhatWasWrittenBefore) {
  AtomicFile file(folder_ / "a");
  file.Write("0123456789");
  file.Overwrite(2, "xyz");
  file.Write("end");
  EXPECT_EQ(Content(file.temporary()).substr(0, 10), "01xyz56789");
  file.Commit();
  EXPECT_EQ(Content(folder_ / "a"), "01xyz56789end");
}

TEST_F(AtomicFileTest, CreateWritableFolderMakesParentsAndLeavesNothing) {
  const fs::path deep = folder_ / "a" / "b" / "c";
  CreateWritableFolder(deep);
  CreateWritableFolder(deep);
  EXPECT_TRUE(fs::is_directory(deep));
  EXPECT_EQ(FilesIn(deep), 0);
}

TEST_F(AtomicFileTest, CreateWritableFolderRefusesAFile) {
  WriteFileAtomically(folder_ / "file", "x");
  EXPECT_EQ(Catch([&] { CreateWritableFolder(folder_ / "file" / "sub"); }).kind, ErrorKind::kUsage);
  EXPECT_EQ(Catch([&] { CreateWritableFolder(folder_ / "file"); }).kind, ErrorKind::kUsage);
  EXPECT_EQ(Catch([] { CreateWritableFolder("/proc/uper"); }).kind, ErrorKind::kUsage);
}

}  // namespace
}  // namespace uper
