#pragma once

#include <string>
#include <vector>

#include "uper/envs/options.h"

namespace uper::cli {

// The environment options of `--set environment.key=value` arguments, for commands without an
// agent. Throws Error(kUsage) for other keys.
EnvironmentOptions EnvironmentOptionsFrom(const std::vector<std::string>& assignments);

}  // namespace uper::cli
