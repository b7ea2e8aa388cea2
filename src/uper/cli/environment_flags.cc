#include "uper/cli/environment_flags.h"

#include "uper/base/error.h"
#include "uper/train/config/config_io.h"

namespace uper::cli {

EnvironmentOptions EnvironmentOptionsFrom(const std::vector<std::string>& assignments) {
  RunConfig config;
  for (const std::string& assignment : assignments) {
    const auto [key, value] = SplitSetting(assignment);
    if (!key.starts_with("environment.") || key == "environment.name") {
      throw Error(ErrorKind::kUsage, "--set " + assignment +
                                         ": there is no agent here: only environment.* "
                                         "keys (--env names the environment)");
    }
    SetKey(config, key, value, "--set " + assignment);
  }
  return config.environment.options;
}

}  // namespace uper::cli
