#pragma once

#include <string>
#include <vector>

#include "uper/train/config/config.h"
#include "uper/train/config/config_field.h"

namespace uper {

// Every key of the configuration in the order of config.toml: the top level, then the tables.
std::vector<ConfigField> ConfigFields(RunConfig& config);

// The names of all keys.
std::vector<std::string> ConfigKeyNames();

}  // namespace uper
