#include "uper/train/run/memory_info.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

namespace uper {
namespace {

class MemoryInfoTest : public testing::Test {
 protected:
  MemoryInfoTest() {
    std::filesystem::remove_all(root_);
    Write("proc/meminfo", "MemTotal:  1000 kB\nMemFree:  10 kB\nMemAvailable:  600 kB\n");
  }
  ~MemoryInfoTest() override { std::filesystem::remove_all(root_); }

  void Write(const std::filesystem::path& path, const std::string& text) const {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }

  const std::filesystem::path root_ =
      std::filesystem::temp_directory_path() / ("uper_memory_info." + std::to_string(getpid()));
};

TEST_F(MemoryInfoTest, WithoutControlGroups) {
  const MemoryInfo memory = ReadMemoryInfo(root_);
  EXPECT_EQ(memory.total_bytes, 1000 * 1024);
  EXPECT_EQ(memory.available_bytes, 600 * 1024);
  EXPECT_FALSE(memory.limit_bytes);
}

TEST_F(MemoryInfoTest, UnlimitedGroupsChangeNothing) {
  Write("proc/self/cgroup", "0::/jobs/mine\n");
  Write("sys/fs/cgroup/jobs/mine/memory.max", "max\n");
  const MemoryInfo memory = ReadMemoryInfo(root_);
  EXPECT_EQ(memory.available_bytes, 600 * 1024);
  EXPECT_FALSE(memory.limit_bytes);
}

TEST_F(MemoryInfoTest, TheTightestOfNestedGroupsCounts) {
  Write("proc/self/cgroup", "0::/jobs/mine\n");
  Write("sys/fs/cgroup/memory.max", "900000\n");
  Write("sys/fs/cgroup/jobs/memory.max", "300000\n");
  Write("sys/fs/cgroup/jobs/memory.current", "250000\n");
  Write("sys/fs/cgroup/jobs/memory.stat", "anon 1\ninactive_file 50000\n");
  Write("sys/fs/cgroup/jobs/mine/memory.max", "400000\n");
  const MemoryInfo memory = ReadMemoryInfo(root_);
  EXPECT_EQ(memory.limit_bytes, 300000);
  EXPECT_EQ(memory.available_bytes, 300000 - (250000 - 50000));
}

TEST_F(MemoryInfoTest, Version1GroupsCountToo) {
  Write("proc/self/cgroup", "12:cpu,cpuacct:/other\n9:memory:/jobs/mine\n0::/\n");
  Write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_FALSE(ReadMemoryInfo(root_).limit_bytes);
  Write("sys/fs/cgroup/memory/jobs/mine/memory.limit_in_bytes", "500000\n");
  Write("sys/fs/cgroup/memory/jobs/mine/memory.usage_in_bytes", "300000\n");
  Write("sys/fs/cgroup/memory/jobs/mine/memory.stat",
        "inactive_file 1\ntotal_inactive_file 40000\n");
  const MemoryInfo memory = ReadMemoryInfo(root_);
  EXPECT_EQ(memory.limit_bytes, 500000);
  EXPECT_EQ(memory.available_bytes, 500000 - (300000 - 40000));
}

TEST_F(MemoryInfoTest, AFullGroupLeavesNothing) {
  Write("sys/fs/cgroup/memory.max", "1000\n");
  Write("sys/fs/cgroup/memory.current", "2000\n");
  EXPECT_EQ(ReadMemoryInfo(root_).available_bytes, 0);
}

TEST_F(MemoryInfoTest, WithoutProcEverythingIsZero) {
  const MemoryInfo memory = ReadMemoryInfo(root_ / "nowhere");
  EXPECT_EQ(memory.total_bytes, 0);
  EXPECT_EQ(memory.available_bytes, 0);
}

}  // namespace
}  // namespace uper
