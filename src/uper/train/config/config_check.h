#pragma once

#include "uper/train/config/config.h"

namespace uper {

// Rules between fields. Throws Error(kUsage) that names the keys and says what to do. Ranges of
// single fields are checked where they are set.
void CheckConfig(const RunConfig& config);

}  // namespace uper
