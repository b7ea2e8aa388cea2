#include "uper/train/config/agent_files.h"

#include "uper/base/did_you_mean.h"
#include "uper/base/error.h"

namespace uper {

std::span<const std::string> AgentNames() {
  static const std::vector<std::string> names = {
      "dqn",        "double-dqn", "per",         "qr-dqn", "qr-per",      "qr-ens-uni",
      "qr-ens-per", "qr-ens-epi", "qr-ens-uper", "c51",    "c51-ens-per", "c51-ens-uper"};
  return names;
}

const EmbeddedFile& FindAgentFile(std::string_view protocol, std::string_view agent) {
  const std::string path = std::string(protocol) + "/" + std::string(agent) + ".toml";
  for (const EmbeddedFile& file : ConfigFiles()) {
    if (file.path == path) return file;
  }
  throw Error(ErrorKind::kUsage, "unknown agent '" + std::string(agent) + "'" +
                                     DidYouMean(agent, AgentNames()) +
                                     "; `uper list agents` prints them all");
}

}  // namespace uper
