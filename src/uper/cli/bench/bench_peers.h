#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace uper {

// Runs a script of benchmarks/ that times other people's programs, with `settings` as its one
// argument, and returns the list it prints. The script leaves out what is not installed and says so
// on standard error; without Python the list is empty, and that is said too.
// Throws Error(kInternal) if the script fails.
nlohmann::json RunPeers(const std::string& script, const nlohmann::json& settings);

}  // namespace uper
