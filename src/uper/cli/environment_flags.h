#pragma once

#include <string>
#include <vector>

#include "uper/envs/options.h"

namespace uper {

// The options that `--set environment.key=value` arguments ask for. Throws Error(kUsage) for other
// keys: for commands that have no agent.
EnvironmentOptions EnvironmentOptionsFrom(const std::vector<std::string>& assignments);

}  // namespace uper
