#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "experiments/framework/figure.h"
#include "uper/base/error.h"
#include "uper/cli/commands.h"
#include "uper/cli/exit_code.h"
#include "uper/core/priority.h"
#include "uper/envs/registry.h"
#include "uper/metrics/metrics_row.h"
#include "uper/train/config/agent_files.h"
#include "uper/train/config/config_fields.h"
#include "uper/train/config/config_io.h"

namespace uper::cli {
namespace {

std::vector<std::string> Names(const std::string& what) {
  if (what == "envs") return EnvironmentNames();
  if (what == "agents") return {AgentNames().begin(), AgentNames().end()};
  if (what == "keys") return ConfigKeyNames();
  std::vector<std::string> names;
  if (what == "columns") {
    for (const MetricsColumn& column : kMetricsColumns) names.emplace_back(column.name);
  } else if (what == "figures") {
    for (const auto& figure : experiments::AllFigures()) names.push_back(figure.id);
  } else {
    for (const PriorityRule rule : AllPriorityRules()) names.emplace_back(PriorityRuleName(rule));
  }
  return names;
}

std::string Markdown(const std::string& what) {
  if (what == "keys") return ConfigDocumentation();
  if (what == "columns") return MetricsDocumentation();
  if (what == "priorities") return PriorityDocumentation();
  throw Error(ErrorKind::kUsage, "--markdown is for priorities, keys and columns");
}

}  // namespace

int RunList(const ListOptions& options) {
  if (options.markdown) {
    fmt::print("{}", Markdown(options.what));
    return kExitDone;
  }
  const std::vector<std::string> names = Names(options.what);
  if (options.json) {
    fmt::print("{}\n", nlohmann::ordered_json{{options.what, names}}.dump());
  } else {
    for (const std::string& name : names) fmt::print("{}\n", name);
  }
  return kExitDone;
}

}  // namespace uper::cli
