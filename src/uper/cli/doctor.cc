#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "uper/base/error.h"
#include "uper/cli/commands.h"
#include "uper/cli/exit_code.h"
#include "uper/cli/python_tools.h"
#include "uper/cli/version.h"
#include "uper/envs/atari/emulator.h"
#include "uper/envs/atari/rom_file.h"
#include "uper/envs/registry.h"
#include "uper/nn/cpu/kernels/simd_info.h"
#include "uper/nn/gpu.h"
#include "uper/train/config/agent_files.h"
#include "uper/train/run/memory_info.h"
#include "uper/train/run/run_record.h"

namespace uper::cli {
namespace {

// With less free memory or disk than this, only a small run is possible.
constexpr std::int64_t kScantBytes = std::int64_t{1} << 30;

// Prints {"version": ..., "matplotlib": version or null, ...} about the Python that runs it.
constexpr const char* kAskPython = R"(
import importlib.metadata, json, platform
def version(name):
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
try:
    import matplotlib.pyplot
    drawing = matplotlib.__version__
except Exception:
    drawing = None
print(json.dumps({"version": platform.python_version(), "matplotlib": drawing,
                  "torch": version("torch"), "stable_baselines3": version("stable-baselines3")}))
)";

// Nothing if no working Python is found.
std::optional<nlohmann::json> AskPython() {
  if (access(PythonProgram().c_str(), X_OK) != 0) return std::nullopt;
  const CommandResult result = RunPython({"-c", kAskPython});
  if (result.exit_status != 0) return std::nullopt;
  nlohmann::json json = nlohmann::json::parse(result.output, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return std::nullopt;
  return json;
}

struct Findings {
  MachineInfo machine;
  MemoryInfo memory;
  std::int64_t disk_free_bytes = 0;
  bool folder_writable = false;
  std::optional<nlohmann::json> python;
  std::size_t environments = 0;
  std::size_t roms = 0;                   // of the 57 games, in the set-up's folder
  std::vector<std::string> missing_roms;  // games whose ROM is missing or wrong
  GpuInfo gpu;

  bool draws() const { return python && !python->at("matplotlib").is_null(); }
};

// The games whose ROM is missing or wrong.
std::vector<std::string> MissingRoms() {
  std::vector<std::string> missing;
  for (const atari::Game& game : atari::kGames) {
    try {
      atari::CheckedRom(atari::DefaultRomFolder(), game);
    } catch (const Error&) {
      missing.emplace_back(game.name);
    }
  }
  return missing;
}

Findings Examine() {
  std::error_code error;
  const std::filesystem::space_info space = std::filesystem::space(".", error);
  const std::vector<std::string> missing_roms = MissingRoms();
  return {.machine = DescribeMachine(),
          .memory = ReadMemoryInfo(),
          .disk_free_bytes = error ? 0 : static_cast<std::int64_t>(space.available),
          .folder_writable = access(".", W_OK) == 0,
          .python = AskPython(),
          .environments = EnvironmentNames().size(),
          .roms = atari::kGames.size() - missing_roms.size(),
          .missing_roms = missing_roms,
          .gpu = QueryGpu()};
}

std::vector<std::string> WhatWorks(const Findings& found) {
  std::vector<std::string> works = {
      fmt::format("training, evaluating and playing {} built-in environments with {} agents",
                  found.environments, AgentNames().size()),
      "benchmarks and the figures' data and claims"};
  if (found.gpu.usable) works.emplace_back("training on the GPU");
  if (found.draws()) works.emplace_back("pictures of figures and training curves");
  return works;
}

std::vector<std::string> WhatDoesNot(const Findings& found) {
  std::vector<std::string> missing;
  if (!found.gpu.usable) missing.push_back("training on a GPU: " + found.gpu.unusable_because);
  if (!atari::EmulatorAvailable()) {
    missing.push_back("Atari games: the emulator is " + atari::EmulatorDescription());
  } else if (!found.missing_roms.empty()) {
    missing.push_back(fmt::format("Atari games without a right ROM in {}: {}; run `make setup`",
                                  atari::DefaultRomFolder().string(),
                                  fmt::join(found.missing_roms, ", ")));
  }
  if (!found.python) {
    missing.push_back(fmt::format("pictures: no working Python at {}; run `make setup`",
                                  PythonProgram().string()));
  } else if (!found.draws()) {
    missing.emplace_back("pictures: Python has no matplotlib; run `make setup`");
  }
  if (!found.folder_writable) {
    missing.emplace_back("writing runs here: the current folder is read-only; use --out");
  } else if (found.disk_free_bytes < kScantBytes) {
    missing.emplace_back("long runs here: less than 1 GiB of disk is free; use --out");
  }
  if (found.memory.available_bytes < kScantBytes) {
    missing.emplace_back("large replay memories: less than 1 GiB of memory is available");
  }
  return missing;
}

std::string AtariText(const Findings& found) {
  return fmt::format("{}; {} of {} ROMs in {}", atari::EmulatorDescription(), found.roms,
                     atari::kGames.size(), atari::DefaultRomFolder().string());
}

std::string Gibibytes(std::int64_t bytes) {
  return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / (1 << 30));
}

std::string PythonText(const Findings& found) {
  if (!found.python) return "none at " + PythonProgram().string();
  std::string text = fmt::format("{} ({})", PythonProgram().string(),
                                 found.python->at("version").get<std::string>());
  for (const char* name : {"matplotlib", "torch", "stable_baselines3"}) {
    const nlohmann::json& version = found.python->at(name);
    text += version.is_null() ? fmt::format(", no {}", name)
                              : fmt::format(", {} {}", name, version.get<std::string>());
  }
  return text;
}

void PrintText(const Findings& found) {
  const auto line = [](const char* name, const std::string& text) {
    fmt::print("{:<14}{}\n", name, text);
  };
  const MemoryInfo& memory = found.memory;
  line("uper", fmt::format("{} ({})", ProgramVersion(), ProgramRevision()));
  line("CPU", fmt::format("{}, {} core{} for this program", found.machine.cpu, found.machine.cores,
                          found.machine.cores == 1 ? "" : "s"));
  line("kernels", cpu::SimdTargetName());
  line("memory",
       fmt::format(
           "{}, {} available, {}", Gibibytes(memory.total_bytes), Gibibytes(memory.available_bytes),
           memory.limit_bytes ? "limited to " + Gibibytes(*memory.limit_bytes) : "no limit set"));
  line("disk", Gibibytes(found.disk_free_bytes) + " free in the current folder");
  line("GPU", found.gpu.usable ? found.gpu.name + ", " + Gibibytes(found.gpu.memory_bytes)
                               : "none: " + found.gpu.unusable_because);
  line("Python", PythonText(found));
  line("environments", fmt::format("{} built in (`uper list envs`)", found.environments));
  line("Atari", AtariText(found));
  fmt::print("\nworks here:\n");
  for (const std::string& what : WhatWorks(found)) fmt::print("  {}\n", what);
  fmt::print("does not work here:\n");
  for (const std::string& what : WhatDoesNot(found)) fmt::print("  {}\n", what);
}

nlohmann::ordered_json Describe(const Findings& found) {
  nlohmann::ordered_json json = {{"version", ProgramVersion()},
                                 {"revision", ProgramRevision()},
                                 {"cpu", found.machine.cpu},
                                 {"cores", found.machine.cores},
                                 {"instruction_set", cpu::SimdTargetName()},
                                 {"memory_bytes", found.memory.total_bytes},
                                 {"memory_available_bytes", found.memory.available_bytes},
                                 {"memory_limit_bytes", nullptr},
                                 {"disk_free_bytes", found.disk_free_bytes},
                                 {"gpu", nullptr},
                                 {"atari", atari::EmulatorAvailable()},
                                 {"atari_emulator", atari::EmulatorDescription()},
                                 {"atari_roms", found.roms},
                                 {"atari_rom_dir", atari::DefaultRomFolder().string()},
                                 {"python", nullptr},
                                 {"environments", found.environments},
                                 {"agents", AgentNames().size()},
                                 {"works", WhatWorks(found)},
                                 {"does_not_work", WhatDoesNot(found)}};
  if (found.memory.limit_bytes) json["memory_limit_bytes"] = *found.memory.limit_bytes;
  if (found.gpu.usable) {
    json["gpu"] = {{"name", found.gpu.name}, {"memory_bytes", found.gpu.memory_bytes}};
  }
  if (found.python) {
    json["python"] = *found.python;
    json["python"]["program"] = PythonProgram().string();
  }
  return json;
}

}  // namespace

int RunDoctor(const DoctorOptions& options) {
  const Findings found = Examine();
  if (options.json) {
    fmt::print("{}\n", Describe(found).dump());
  } else {
    PrintText(found);
  }
  return kExitDone;
}

}  // namespace uper::cli
