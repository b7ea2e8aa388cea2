#include "uper/train/run/memory_info.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <string>

namespace uper {
namespace {

// The number after a name at the start of a line ("MemTotal:", "inactive_file"); 0 without it.
std::int64_t NumberAfter(const std::filesystem::path& path, const std::string& name) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(name)) return std::strtoll(line.c_str() + name.size(), nullptr, 10);
  }
  return 0;
}

// The number in a file that has nothing else; nothing for "max" or a missing file.
std::optional<std::int64_t> OnlyNumber(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::int64_t number = 0;
  if (file >> number) return number;
  return std::nullopt;
}

// Where a version of control groups keeps the limits of memory.
struct GroupVersion {
  const char* mount;  // of the hierarchy that limits memory
  const char* line;   // what stands before our path in /proc/self/cgroup
  const char* limit;  // files of a group
  const char* used;
  const char* droppable;  // line of memory.stat
};
constexpr GroupVersion kVersion2{.mount = "sys/fs/cgroup",
                                 .line = "::/",
                                 .limit = "memory.max",
                                 .used = "memory.current",
                                 .droppable = "inactive_file "};
constexpr GroupVersion kVersion1{.mount = "sys/fs/cgroup/memory",
                                 .line = ":memory:/",
                                 .limit = "memory.limit_in_bytes",
                                 .used = "memory.usage_in_bytes",
                                 .droppable = "total_inactive_file "};
// Version 1 expresses "no limit" by a number about this large.
constexpr std::int64_t kNoLimit = std::int64_t{1} << 60;

// The path of our control group below the mount: version 2 "0::/path", version 1 "9:memory:/path".
std::filesystem::path ControlGroup(const std::filesystem::path& root, const GroupVersion& version) {
  std::ifstream file(root / "proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::string rest = line.substr(colon);
    if (rest.starts_with(version.line)) return rest.substr(std::strlen(version.line));
  }
  return {};
}

// Lowers limit and available memory to what one control group leaves. Its page cache that can be
// dropped (inactive_file) counts as free.
void ApplyGroup(const std::filesystem::path& folder, const GroupVersion& version,
                MemoryInfo& memory) {
  const std::optional<std::int64_t> limit = OnlyNumber(folder / version.limit);
  if (!limit || *limit >= kNoLimit) return;
  const std::int64_t used = OnlyNumber(folder / version.used).value_or(0) -
                            NumberAfter(folder / "memory.stat", version.droppable);
  memory.limit_bytes = std::min(memory.limit_bytes.value_or(*limit), *limit);
  memory.available_bytes =
      std::min(memory.available_bytes, std::max<std::int64_t>(0, *limit - used));
}

}  // namespace

MemoryInfo ReadMemoryInfo(const std::filesystem::path& root) {
  const std::filesystem::path meminfo = root / "proc/meminfo";
  MemoryInfo memory{.total_bytes = 1024 * NumberAfter(meminfo, "MemTotal:"),
                    .available_bytes = 1024 * NumberAfter(meminfo, "MemAvailable:")};
  for (const GroupVersion& version : {kVersion2, kVersion1}) {
    std::filesystem::path folder = root / version.mount;
    ApplyGroup(folder, version, memory);
    for (const std::filesystem::path& part : ControlGroup(root, version)) {
      folder /= part;
      ApplyGroup(folder, version, memory);
    }
  }
  return memory;
}

}  // namespace uper
