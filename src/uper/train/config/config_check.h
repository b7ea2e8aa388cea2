#pragma once

#include "uper/train/config/config.h"

namespace uper {

// Checks the rules between fields. Throws Error(kUsage) that names the keys and says what to do.
// The range of a single field is in config_fields.cc and is checked when the field is set.
void CheckConfig(const RunConfig& config);

}  // namespace uper
