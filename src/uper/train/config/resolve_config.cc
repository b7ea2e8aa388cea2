#include "uper/train/config/resolve_config.h"

#include <algorithm>
#include <optional>

#include "uper/base/check.h"
#include "uper/base/files/read_text.h"
#include "uper/envs/registry.h"
#include "uper/train/config/agent_files.h"
#include "uper/train/config/config_check.h"
#include "uper/train/config/config_io.h"

namespace uper {
namespace {

constexpr std::size_t kMaxConfigBytes = 1 << 20;

std::string ReadConfigText(const std::filesystem::path& path, ErrorKind missing) {
  std::optional<std::string> text = ReadText(path, kMaxConfigBytes);
  if (!text) throw Error(missing, "cannot read " + path.string());
  if (text->size() > kMaxConfigBytes) {
    throw Error(ErrorKind::kUsage, path.string() + " is too large to be a configuration");
  }
  return *std::move(text);
}

// Sources after the agent's file, lowest first.
struct UserSources {
  std::string file_name;
  std::vector<TomlEntry> entries;
  std::vector<ConfigFlag> assignments;  // flags and --set

  void ApplyTo(RunConfig& config) const {
    ApplyEntries(config, entries, file_name);
    for (const ConfigFlag& assignment : assignments) {
      SetKey(config, assignment.key, assignment.value, assignment.flag);
    }
  }
};

UserSources ReadSources(const ConfigInputs& inputs) {
  UserSources sources;
  if (inputs.file) {
    sources.file_name = inputs.file->string();
    sources.entries = ReadToml(ReadConfigText(*inputs.file, ErrorKind::kUsage), sources.file_name);
  }
  sources.assignments = inputs.flags;
  for (const std::string& setting : inputs.settings) {
    const auto [key, value] = SplitSetting(setting);
    sources.assignments.push_back({.flag = "--set " + setting, .key = key, .value = value});
  }
  return sources;
}

// An unknown environment has the defaults of an entry here. It is refused with the nearest name
// when it is described or made.
EnvironmentEntry EntryOf(const std::string& environment) {
  const EnvironmentEntry* entry = FindEnvironment(environment);
  return entry != nullptr ? *entry : EnvironmentEntry{};
}

}  // namespace

RunConfig ResolveConfig(const ConfigInputs& inputs) {
  const UserSources sources = ReadSources(inputs);
  RunConfig asked;  // only to find the agent and the environment
  sources.ApplyTo(asked);
  const EnvironmentEntry entry = EntryOf(asked.environment.name);
  const EmbeddedFile& file = FindAgentFile(entry.protocol, asked.agent.name);

  RunConfig config;
  ApplyToml(config, file.text, "configs/" + std::string(file.path));
  ApplyToml(config, entry.settings, "the settings of " + asked.environment.name);
  sources.ApplyTo(config);
  config.environment.name = asked.environment.name;
  config.agent.name = asked.agent.name;
  CheckConfig(config);
  return config;
}

RunConfig ReadDumpedConfig(const std::filesystem::path& path) {
  const std::string text = ReadConfigText(path, ErrorKind::kMissingData);
  RunConfig config;
  try {
    ApplyToml(config, text, path.string());
    CheckConfig(config);
  } catch (const Error& error) {
    throw Error(ErrorKind::kCorrupt,
                std::string("the run's configuration is damaged: ") + error.what());
  }
  return config;
}

void FillAutomaticKeys(RunConfig& config, int frames_per_step) {
  UPER_CHECK(frames_per_step >= 1, "at least one frame per step");
  if (config.network.torso == TorsoPreset::kAuto) {
    const EnvironmentEntry entry = EntryOf(config.environment.name);
    SetKey(config, "network.torso", entry.torso, "environment " + config.environment.name);
    UPER_CHECK(config.network.torso != TorsoPreset::kAuto, "the entry must name a torso");
  }
  ReplayConfig& replay = config.replay;
  if (replay.importance_exponent_end_transitions == 0) {
    replay.importance_exponent_end_transitions =
        std::max({std::int64_t{1}, replay.importance_exponent_start_transitions,
                  config.frames / frames_per_step});
  }
}

}  // namespace uper
