#include "uper/train/run/run_record.h"

#include <ctime>
#include <fstream>
#include <limits>

#include "uper/base/files/atomic_file.h"
#include "uper/base/threads/parallel.h"
#include "uper/checkpoint/bounded_json.h"

namespace uper {
namespace {

using nlohmann::json;

// The value after "name : " in a /proc file.
std::string ProcField(const char* path, const std::string& name) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(':');
    if (!line.starts_with(name) || colon == std::string::npos) continue;
    const std::size_t begin = line.find_first_not_of(" \t", colon + 1);
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return "";
}

std::string WithoutFolders(const std::string& argument) {
  const std::size_t equals = argument.find('=');
  const std::size_t begin = equals == std::string::npos ? 0 : equals + 1;
  const std::string path = argument.substr(begin);
  if (!path.starts_with('/') && !path.starts_with('~')) return argument;
  const std::string last = std::filesystem::path(path).lexically_normal().filename().string();
  return argument.substr(0, begin) + ".../" + last;
}

json ToJson(const std::optional<double>& value) { return value ? json(*value) : json(nullptr); }

std::optional<double> OptionalMember(const json& object, const char* key, const std::string& what) {
  if (checkpoint::JsonMember<json>(object, key, what).is_null()) return std::nullopt;
  return checkpoint::JsonMember<double>(object, key, what);
}

void WriteJson(const std::filesystem::path& path, const nlohmann::ordered_json& document) {
  // Command lines may hold bytes that are not UTF-8.
  using Handler = nlohmann::ordered_json::error_handler_t;
  WriteFileAtomically(path, document.dump(2, ' ', false, Handler::replace) + "\n");
}

}  // namespace

MachineInfo DescribeMachine() {
  const std::string kilobytes = ProcField("/proc/meminfo", "MemTotal");
  return {.cpu = ProcField("/proc/cpuinfo", "model name"),
          .cores = AvailableCores(),
          .memory_bytes = 1024 * std::strtoll(kilobytes.c_str(), nullptr, 10)};
}

std::vector<std::string> RecordedCommand(std::span<const std::string> arguments) {
  std::vector<std::string> command;
  for (const std::string& argument : arguments) command.push_back(WithoutFolders(argument));
  return command;
}

std::string UtcTime(std::int64_t unix_seconds) {
  const std::time_t time = unix_seconds;
  std::tm parts{};
  gmtime_r(&time, &parts);
  char text[32];
  return {text, std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

void WriteRunRecord(const std::filesystem::path& path, const RunRecord& record) {
  WriteJson(path, {{"version", record.version},
                   {"git_revision", record.git_revision},
                   {"git_dirty", record.git_dirty},
                   {"command", record.command},
                   {"seed", record.seed},
                   {"machine",
                    {{"cpu", record.machine.cpu},
                     {"cores", record.machine.cores},
                     {"memory_bytes", record.machine.memory_bytes},
                     {"instruction_path", record.machine.instruction_path},
                     {"gpu", record.machine.gpu}}},
                   {"start_time", record.start_time}});
}

RunRecord ReadRunRecord(const std::filesystem::path& path) {
  const json file = checkpoint::ReadJsonFile(path);
  const std::string what = path.string();
  const json machine = checkpoint::JsonMember<json>(file, "machine", what);
  RunRecord record{.version = checkpoint::JsonMember<std::string>(file, "version", what),
                   .git_revision = checkpoint::JsonMember<std::string>(file, "git_revision", what),
                   .git_dirty = checkpoint::JsonMember<bool>(file, "git_dirty", what),
                   .seed = checkpoint::JsonMember<std::int64_t>(file, "seed", what),
                   .start_time = checkpoint::JsonMember<std::string>(file, "start_time", what)};
  for (const json& argument : checkpoint::JsonMember<json>(file, "command", what)) {
    record.command.push_back(argument.is_string() ? argument.get<std::string>() : "");
  }
  record.machine = {
      .cpu = checkpoint::JsonMember<std::string>(machine, "cpu", what),
      .cores = static_cast<int>(checkpoint::JsonMember<std::int64_t>(machine, "cores", what)),
      .memory_bytes = checkpoint::JsonMember<std::int64_t>(machine, "memory_bytes", what),
      .instruction_path = checkpoint::JsonMember<std::string>(machine, "instruction_path", what),
      .gpu = checkpoint::JsonMember<std::string>(machine, "gpu", what)};
  return record;
}

void WriteRunSummary(const std::filesystem::path& path, const RunSummary& summary) {
  WriteJson(path, {{"agent", summary.agent},
                   {"env", summary.env},
                   {"seed", summary.seed},
                   {"frames", summary.frames},
                   {"updates", summary.updates},
                   {"final_eval_return", ToJson(summary.final_eval_return)},
                   {"best_eval_return", ToJson(summary.best_eval_return)},
                   {"wall_seconds", summary.wall_seconds},
                   {"frames_per_second", summary.frames_per_second}});
}

RunSummary ReadRunSummary(const std::filesystem::path& path) {
  const json file = checkpoint::ReadJsonFile(path);
  const std::string what = path.string();
  return {.agent = checkpoint::JsonMember<std::string>(file, "agent", what),
          .env = checkpoint::JsonMember<std::string>(file, "env", what),
          .seed = checkpoint::JsonMember<std::int64_t>(file, "seed", what),
          .frames = checkpoint::JsonMember<std::int64_t>(file, "frames", what),
          .updates = checkpoint::JsonMember<std::int64_t>(file, "updates", what),
          .final_eval_return = OptionalMember(file, "final_eval_return", what),
          .best_eval_return = OptionalMember(file, "best_eval_return", what),
          .wall_seconds = checkpoint::JsonMember<double>(file, "wall_seconds", what),
          .frames_per_second = checkpoint::JsonMember<double>(file, "frames_per_second", what)};
}

}  // namespace uper
