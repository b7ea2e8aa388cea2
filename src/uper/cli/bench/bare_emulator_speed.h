#pragma once

#include "uper/base/threads/parallel.h"
#include "uper/train/config/config.h"

namespace uper::cli {

// Frames per second of the bare emulator on one core, without observations. It plays for about
// `seconds`. Returns 0 for environments without an emulator.
double BareEmulatorSpeed(const EnvironmentConfig& environment, double seconds,
                         const StopFlag& stop);

}  // namespace uper::cli
