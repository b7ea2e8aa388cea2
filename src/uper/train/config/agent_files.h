#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "uper/base/embedded_file.h"

namespace uper {

// The files PROTOCOL/AGENT.toml of configs/, sorted by path.
std::span<const EmbeddedFile> ConfigFiles();

// The agents in the order of the documentation.
std::span<const std::string> AgentNames();

// The settings of an agent; `protocol` is that of an EnvironmentEntry. Throws Error(kUsage) with
// the nearest name for an agent that does not exist.
const EmbeddedFile& FindAgentFile(std::string_view protocol, std::string_view agent);

}  // namespace uper
