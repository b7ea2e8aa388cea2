#include "uper/cli/bench/bench_peers.h"

#include <fmt/format.h>
#include <unistd.h>

#include <csignal>

#include "uper/base/error.h"
#include "uper/cli/python_tools.h"

namespace uper::cli {

nlohmann::json RunPeers(const std::string& script, const nlohmann::json& settings) {
  if (access(PythonProgram().c_str(), X_OK) != 0) {
    fmt::print(stderr, "no Python at {}: other programs are left out\n", PythonProgram().string());
    return nlohmann::json::array();
  }
  const CommandResult result =
      RunPython({(SourceFolder() / "benchmarks" / script).string(), settings.dump()});
  if (result.exit_status == 128 + SIGINT || result.exit_status == 128 + SIGTERM) {
    throw Error(ErrorKind::kInterrupted, "interrupted");
  }
  if (result.exit_status != 0) {
    throw Error(ErrorKind::kInternal, "benchmarks/" + script + " failed (its message is above)");
  }
  return nlohmann::json::parse(result.output);
}

}  // namespace uper::cli
