#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace uper {

// Memory of this machine, as far as this process may use it.
struct MemoryInfo {
  std::int64_t total_bytes = 0;
  std::int64_t available_bytes = 0;         // without swapping, limits counted
  std::optional<std::int64_t> limit_bytes;  // the tightest of our control groups; nothing: none
};

// Reads /proc and /sys/fs/cgroup below `root`; a missing value counts as 0 or as no limit.
MemoryInfo ReadMemoryInfo(const std::filesystem::path& root = "/");

}  // namespace uper
