#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace uper {

// The machine a run was started on. No names of users, hosts or folders.
struct MachineInfo {
  std::string cpu;                // model name
  int cores = 0;                  // that this process may use
  std::int64_t memory_bytes = 0;  // of the machine
  std::string instruction_path;   // of the kernels, "avx2"; results may differ between paths
  std::string gpu;                // empty: none used
};

// Fills the fields that the system reports; the caller fills the rest.
MachineInfo DescribeMachine();

// run.json.
struct RunRecord {
  std::string version;
  std::string git_revision;
  bool git_dirty = false;
  std::vector<std::string> command;  // RecordedCommand(argv)
  std::int64_t seed = 0;
  MachineInfo machine;
  std::string start_time;  // UTC, ISO 8601
};

// The command without private paths: an absolute path (also after '=') or a path below ~ keeps only
// its last part, after ".../".
std::vector<std::string> RecordedCommand(std::span<const std::string> arguments);

// "2026-01-31T12:00:00Z" for seconds since 1970.
std::string UtcTime(std::int64_t unix_seconds);

void WriteRunRecord(const std::filesystem::path& path, const RunRecord& record);
// Throws Error(kMissingData) if the file does not exist, Error(kCorrupt) if it is invalid.
RunRecord ReadRunRecord(const std::filesystem::path& path);

// summary.json; a missing value (no evaluation) is null.
struct RunSummary {
  std::string agent;
  std::string env;
  std::int64_t seed = 0;
  std::int64_t frames = 0;
  std::int64_t updates = 0;
  std::optional<double> final_eval_return;
  std::optional<double> best_eval_return;
  double wall_seconds = 0;
  double frames_per_second = 0;
};

void WriteRunSummary(const std::filesystem::path& path, const RunSummary& summary);
RunSummary ReadRunSummary(const std::filesystem::path& path);

}  // namespace uper
