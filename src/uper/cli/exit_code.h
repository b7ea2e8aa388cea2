#pragma once

#include "uper/base/error.h"

namespace uper {

// Exit codes that users' scripts rely on.
inline constexpr int kExitDone = 0;
inline constexpr int kExitFailure = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitMissingData = 3;
inline constexpr int kExitResources = 4;
inline constexpr int kExitCorrupt = 5;
inline constexpr int kExitNumeric = 6;
inline constexpr int kExitInterruptedSaved = 75;  // run the same command to go on
inline constexpr int kExitInterrupted = 130;      // Ctrl-C where there is nothing to save

int ExitCodeFor(ErrorKind kind);

}  // namespace uper
