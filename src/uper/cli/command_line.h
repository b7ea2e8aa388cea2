#pragma once

#include "uper/base/threads/parallel.h"

namespace uper::cli {

// Parses the arguments and runs the command; returns the exit code. Throws Error.
int RunCommandLine(int argc, char** argv, const StopFlag& stop);

}  // namespace uper::cli
