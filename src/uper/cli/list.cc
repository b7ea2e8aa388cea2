#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "experiments/framework/figure.h"
#include "uper/cli/commands.h"
#include "uper/cli/exit_code.h"
#include "uper/core/priority.h"
#include "uper/envs/registry.h"
#include "uper/train/config/agent_files.h"
#include "uper/train/config/config_fields.h"

namespace uper {
namespace {

std::vector<std::string> Names(const std::string& what) {
  if (what == "envs") return EnvironmentNames();
  if (what == "agents") return {AgentNames().begin(), AgentNames().end()};
  if (what == "keys") return ConfigKeyNames();
  std::vector<std::string> names;
  if (what == "figures") {
    for (const auto& figure : experiments::AllFigures()) names.push_back(figure.id);
  } else {
    for (const PriorityRule rule : AllPriorityRules()) names.emplace_back(PriorityRuleName(rule));
  }
  return names;
}

}  // namespace

int List(const ListOptions& options) {
  const std::vector<std::string> names = Names(options.what);
  if (options.json) {
    fmt::print("{}\n", nlohmann::ordered_json{{options.what, names}}.dump());
  } else {
    for (const std::string& name : names) fmt::print("{}\n", name);
  }
  return kExitDone;
}

}  // namespace uper
