#pragma once

#include "uper/base/error.h"

namespace uper::cli {

// The exit codes are a contract with users' scripts.
inline constexpr int kExitDone = 0;
inline constexpr int kExitFailure = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitMissingData = 3;
inline constexpr int kExitResources = 4;
inline constexpr int kExitCorrupt = 5;
inline constexpr int kExitNumeric = 6;
inline constexpr int kExitInterruptedSaved = 75;  // the same command continues the run
inline constexpr int kExitInterrupted = 130;      // interrupted with nothing to save

int ExitCodeFor(ErrorKind kind);

}  // namespace uper::cli
