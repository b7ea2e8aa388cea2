#include "uper/train/run/run_lock.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <optional>

#include "uper/base/files/files_for_tests.h"

namespace uper {
namespace {

class RunLockTest : public FolderTest {
 protected:
  std::filesystem::path lock_ = folder_ / "lock";
};

TEST_F(RunLockTest, ASecondHolderIsRefusedAndToldWhoHoldsIt) {
  const RunLock first(lock_);
  const Thrown thrown = Catch([&] { RunLock second(lock_); });
  EXPECT_EQ(thrown.kind, ErrorKind::kResources);
  EXPECT_TRUE(thrown.Says("process " + std::to_string(getpid()))) << thrown.message;
  EXPECT_TRUE(thrown.Says(folder_.string()));
  EXPECT_TRUE(thrown.Says(ThisHolder().host));
  // The refusal took nothing away.
  EXPECT_EQ(Catch([&] { RunLock third(lock_); }).kind, ErrorKind::kResources);
}

TEST_F(RunLockTest, IsFreeAgainAfterwards) {
  {
    const RunLock first(lock_);
  }
  EXPECT_EQ(FileContent(lock_), "");
  const RunLock second(lock_);
  EXPECT_EQ(FileContent(lock_), EncodeHolder(ThisHolder()));
}

// A process that holds the lock until it is killed.
TEST_F(RunLockTest, TheLockOfAKilledProcessIsFree) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    std::optional<RunLock> held;
    held.emplace(lock_);
    const char byte = 1;
    [[maybe_unused]] const ssize_t ignored = write(ready[1], &byte, 1);
    for (;;) pause();
  }
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  const Thrown thrown = Catch([&] { RunLock refused(lock_); });
  EXPECT_TRUE(thrown.Says("process " + std::to_string(child))) << thrown.message;
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_EQ(ParseHolder(FileContent(lock_)).process, child);  // the process could not clean up
  EXPECT_NO_THROW(RunLock taken(lock_));
  close(ready[0]);
  close(ready[1]);
}

TEST_F(RunLockTest, GarbageInTheFileDoesNotMatter) {
  PutFile(lock_, std::string(5000, 'x'));
  EXPECT_NO_THROW(RunLock taken(lock_));
}

TEST_F(RunLockTest, AFolderThatCannotBeWrittenIsAUsageError) {
  EXPECT_EQ(Catch([&] { RunLock lock(folder_ / "none" / "lock"); }).kind, ErrorKind::kUsage);
  std::filesystem::create_symlink(folder_ / "elsewhere", folder_ / "link");
  EXPECT_EQ(Catch([&] { RunLock lock(folder_ / "link"); }).kind, ErrorKind::kUsage);
}

TEST(LockHolderTest, RoundTrip) {
  const LockHolder holder{.process = 42, .host = "a.b", .boot = "1-2-3"};
  const LockHolder read = ParseHolder(EncodeHolder(holder));
  EXPECT_EQ(read.process, 42);
  EXPECT_EQ(read.host, "a.b");
  EXPECT_EQ(read.boot, "1-2-3");
  EXPECT_EQ(ParseHolder("process x\n").process, 0);
  EXPECT_EQ(ParseHolder("").process, 0);
}

// MayBeAlive() decides where the file system has no locks.
TEST(LockHolderTest, WhoMayBeAlive) {
  LockHolder holder = ThisHolder();
  EXPECT_FALSE(holder.boot.empty());
  EXPECT_TRUE(MayBeAlive(holder));
  holder.boot = "an earlier boot";
  EXPECT_FALSE(MayBeAlive(holder));
  holder.host = "another host";
  EXPECT_TRUE(MayBeAlive(holder));
  const pid_t child = fork();
  if (child == 0) _exit(0);
  waitpid(child, nullptr, 0);
  holder = ThisHolder();
  holder.process = child;
  EXPECT_FALSE(MayBeAlive(holder));
  EXPECT_FALSE(MayBeAlive({}));
}

}  // namespace
}  // namespace uper
