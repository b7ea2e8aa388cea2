#pragma once

#include "uper/base/threads/parallel.h"
#include "uper/train/config/config.h"

namespace uper {

// Frames a second of the bare emulator on one core, without observations, played for about so many
// seconds; 0 for environments without an emulator.
double RawFramesPerSecond(const EnvironmentConfig& environment, double seconds,
                          const StopFlag& stop);

}  // namespace uper
