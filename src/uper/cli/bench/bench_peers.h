#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace uper::cli {

// Runs a script of benchmarks/ that times other programs, with `settings` as its one argument.
// Returns the list that it prints. The script skips programs that are not installed and says so on
// standard error. Without Python the list is empty, with a message too. Throws Error(kInternal) if
// the script fails.
nlohmann::json RunPeers(const std::string& script, const nlohmann::json& settings);

}  // namespace uper::cli
