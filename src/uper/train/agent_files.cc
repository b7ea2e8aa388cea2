#include "uper/train/agent_files.h"

#include "uper/base/error.h"
#include "uper/base/nearest_name.h"

namespace uper {

std::span<const std::string> AgentNames() {
  static const std::vector<std::string> names = {
      "dqn",        "double-dqn", "per",         "qr-dqn", "qr-per",      "qr-ens-uni",
      "qr-ens-per", "qr-ens-epi", "qr-ens-uper", "c51",    "c51-ens-per", "c51-ens-uper"};
  return names;
}

std::string_view ProtocolOf(std::string_view environment) {
  return environment.starts_with("atari/") ? "atari" : "minatar";
}

const AgentFile& FindAgentFile(std::string_view protocol, std::string_view agent) {
  for (const AgentFile& file : AgentFiles()) {
    if (file.protocol == protocol && file.agent == agent) return file;
  }
  throw Error(ErrorKind::kUsage, "unknown agent '" + std::string(agent) + "'" +
                                     DidYouMean(agent, AgentNames()) +
                                     "; `uper list agents` prints them all");
}

}  // namespace uper
