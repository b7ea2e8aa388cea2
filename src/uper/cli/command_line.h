#pragma once

#include "uper/base/threads/parallel.h"

namespace uper {

// Parses the arguments and runs the command; returns the exit code. Throws Error.
int RunCommandLine(int argc, char** argv, const StopFlag& stop);

}  // namespace uper
