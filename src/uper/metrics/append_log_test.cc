#include "uper/metrics/append_log.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <vector>

#include "uper/base/files/files_for_tests.h"

namespace uper {
namespace {

std::size_t WholeLines(std::string_view text) {
  const std::size_t end = text.rfind('\n');
  return end == std::string_view::npos ? 0 : end + 1;
}

// Simulates a full disk: during its lifetime no file of this process can grow beyond the limit.
class SmallDisk {
 public:
  explicit SmallDisk(rlim_t bytes) {
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &former_);
    const rlimit limit{bytes, former_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~SmallDisk() { setrlimit(RLIMIT_FSIZE, &former_); }

 private:
  rlimit former_{};
};

class AppendLogTest : public FolderTest {
 protected:
  RateLimitedWarning Warn() {
    return RateLimitedWarning([this](const std::string& text) { warnings_.push_back(text); });
  }
  AppendLog Continue(const LogPosition& position) {
    return AppendLog::Continue(path_, position, &WholeLines, Warn());
  }

  std::filesystem::path path_ = folder_ / "log";
  std::vector<std::string> warnings_;
};

TEST_F(AppendLogTest, RecordsAreInTheFileAtOnce) {
  AppendLog log = AppendLog::Create(path_, Warn());
  log.Append("a\n");
  EXPECT_EQ(FileContent(path_), "a\n");
  log.Append("b\n");
  EXPECT_EQ(FileContent(path_), "a\nb\n");
  log.Sync();
  EXPECT_EQ(log.position(), (LogPosition{.bytes = 4}));
  EXPECT_TRUE(warnings_.empty());
}

TEST_F(AppendLogTest, CreateReplacesAFormerFile) {
  PutFile(path_, "old");
  AppendLog::Create(path_, Warn()).Append("new\n");
  EXPECT_EQ(FileContent(path_), "new\n");
}

TEST_F(AppendLogTest, ContinuingDropsWhatCameAfterThePosition) {
  PutFile(path_, "a\nb\nc\nhalf a li");
  AppendLog log = Continue({.bytes = 4});
  EXPECT_EQ(FileContent(path_), "a\nb\n");
  log.Append("x\n");
  EXPECT_EQ(FileContent(path_), "a\nb\nx\n");
  EXPECT_TRUE(warnings_.empty());
}

TEST_F(AppendLogTest, AFileThatIsTooShortLosesItsHalfLineAndIsReported) {
  PutFile(path_, "a\nb\nhal");
  AppendLog log = Continue({.bytes = 100});
  log.Append("x\n");
  EXPECT_EQ(FileContent(path_), "a\nb\nx\n");
  ASSERT_EQ(warnings_.size(), 1u);
  EXPECT_NE(warnings_[0].find("rows are missing"), std::string::npos);
}

TEST_F(AppendLogTest, AMissingFileIsReportedAndStartedAgain) {
  AppendLog log = Continue({.bytes = 4});
  log.Append("x\n");
  EXPECT_EQ(FileContent(path_), "x\n");
  EXPECT_EQ(warnings_.size(), 1u);
}

TEST_F(AppendLogTest, AFullDiskDelaysRowsAndLosesNone) {
  AppendLog log = AppendLog::Create(path_, Warn());
  log.Append("0123456\n");
  {
    const SmallDisk disk(11);
    log.Append("abcdefg\n");  // 3 bytes fit
    log.Append("ABCDEFG\n");
    EXPECT_EQ(FileContent(path_), "0123456\n");
    EXPECT_EQ(log.position(), (LogPosition{.bytes = 8, .pending = "abcdefg\nABCDEFG\n"}));
    log.Sync();
  }
  EXPECT_EQ(warnings_.size(), 1u);  // one per minute
  EXPECT_NE(warnings_[0].find("cannot be written"), std::string::npos);
  log.Append("last\n");
  EXPECT_EQ(FileContent(path_), "0123456\nabcdefg\nABCDEFG\nlast\n");
  EXPECT_TRUE(log.position().pending.empty());
}

TEST_F(AppendLogTest, PendingRowsSurviveARestart) {
  PutFile(path_, "a\n");
  AppendLog log = Continue({.bytes = 2, .pending = "b\n"});
  EXPECT_EQ(FileContent(path_), "a\nb\n");
}

TEST_F(AppendLogTest, MemoryForPendingRowsIsBounded) {
  AppendLog log = AppendLog::Create(path_, Warn());
  const SmallDisk disk(0);
  const std::string record(1 << 20, 'x');
  for (int i = 0; i < 9; ++i) log.Append(record);
  EXPECT_LE(log.position().pending.size(), AppendLog::kMaxPending);
}

TEST_F(AppendLogTest, OpeningThrowsWhereNothingCanBeWritten) {
  EXPECT_EQ(Catch([&] { AppendLog::Create(folder_ / "none" / "log", Warn()); }).kind,
            ErrorKind::kUsage);
  EXPECT_EQ(Catch([&] { AppendLog::Create(folder_, Warn()); }).kind, ErrorKind::kUsage);
}

TEST(RateLimitedWarningTest, LetsOneThroughAMinute) {
  std::chrono::steady_clock::time_point now{};
  std::vector<std::string> passed;
  RateLimitedWarning warn([&](const std::string& text) { passed.push_back(text); },
                          [&] { return now; });
  warn("a");
  now += std::chrono::seconds(59);
  warn("b");
  now += std::chrono::seconds(1);
  warn("c");
  warn("d");
  EXPECT_EQ(passed, (std::vector<std::string>{"a", "c"}));
}

}  // namespace
}  // namespace uper
