#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "uper/train/config/config.h"

namespace uper {

// A command-line flag that stands for a key: {"--env", "environment.name", "minatar/breakout"}.
struct ConfigFlag {
  std::string flag;  // for messages
  std::string key;
  std::string value;
};

// Where a configuration comes from.
struct ConfigInputs {
  std::optional<std::filesystem::path> file;  // the user's CONFIG.toml
  std::vector<ConfigFlag> flags;
  std::vector<std::string> settings;  // texts of --set, in order
};

// The configuration of a run. Later sources win: defaults, the agent's file for the environment's
// protocol, the environment's own settings, the user's file, flags, --set. Agent and environment
// themselves are taken from the last source that names them. Checked as a whole (CheckConfig).
// Throws Error(kUsage).
RunConfig ResolveConfig(const ConfigInputs& inputs);

// The configuration in a file that DumpToml wrote. Throws Error(kMissingData) if there is no such
// file, Error(kCorrupt) if it is not one.
RunConfig ReadDumpedConfig(const std::filesystem::path& path);

// Fills the keys that are "auto", except for `device`. The environment's registry entry gives the
// torso; the length of the run gives the end of the importance schedule. `frames_per_step`
// is FramesPerStepOf() of the environment. Call it for a new run before config.toml is written.
void FillAutomaticKeys(RunConfig& config, int frames_per_step);

}  // namespace uper
