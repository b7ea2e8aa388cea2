#include "apps/uper/memory_info.h"

#include <algorithm>
#include <fstream>
#include <string>

namespace uper {
namespace {

// The number behind a name that begins a line ("MemTotal:", "inactive_file"); 0 without it.
std::int64_t NumberAfter(const std::filesystem::path& path, const std::string& name) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(name)) return std::strtoll(line.c_str() + name.size(), nullptr, 10);
  }
  return 0;
}

// The number that is all of a file; nothing for "max" or no file.
std::optional<std::int64_t> OnlyNumber(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::int64_t number = 0;
  if (file >> number) return number;
  return std::nullopt;
}

// The path of our control group below /sys/fs/cgroup (version 2: the line "0::/path").
std::filesystem::path ControlGroup(const std::filesystem::path& root) {
  std::ifstream file(root / "proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("0::/")) return line.substr(4);
  }
  return {};
}

// Lowers limit and available memory to what one control group leaves. Its page cache that can be
// dropped (inactive_file) counts as free.
void ApplyGroup(const std::filesystem::path& folder, MemoryInfo& memory) {
  const std::optional<std::int64_t> limit = OnlyNumber(folder / "memory.max");
  if (!limit) return;
  const std::int64_t used = OnlyNumber(folder / "memory.current").value_or(0) -
                            NumberAfter(folder / "memory.stat", "inactive_file ");
  memory.limit_bytes = std::min(memory.limit_bytes.value_or(*limit), *limit);
  memory.available_bytes =
      std::min(memory.available_bytes, std::max<std::int64_t>(0, *limit - used));
}

}  // namespace

MemoryInfo ReadMemoryInfo(const std::filesystem::path& root) {
  const std::filesystem::path meminfo = root / "proc/meminfo";
  MemoryInfo memory{.total_bytes = 1024 * NumberAfter(meminfo, "MemTotal:"),
                    .available_bytes = 1024 * NumberAfter(meminfo, "MemAvailable:")};
  std::filesystem::path folder = root / "sys/fs/cgroup";
  ApplyGroup(folder, memory);
  for (const std::filesystem::path& part : ControlGroup(root)) {
    folder /= part;
    ApplyGroup(folder, memory);
  }
  return memory;
}

}  // namespace uper
