#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace uper {

// One file of configs/, built into the program (embed_agent_files.cmake makes the table).
struct AgentFile {
  std::string_view protocol;  // its folder: "atari", "minatar"
  std::string_view agent;     // its name without .toml
  std::string_view text;
};

// All of them; sorted by protocol, then agent.
std::span<const AgentFile> AgentFiles();

// The agents in the order of the documentation.
std::span<const std::string> AgentNames();

// Whose settings an environment uses: "atari" for atari/..., "minatar" for all others.
std::string_view ProtocolOf(std::string_view environment);

// Throws Error(kUsage) with the nearest name for an agent that does not exist.
const AgentFile& FindAgentFile(std::string_view protocol, std::string_view agent);

}  // namespace uper
