#pragma once

#include <vector>

#include "uper/core/priority.h"
#include "uper/envs/registry.h"

namespace uper {

// A program adds these to the command line.
struct Extensions {
  std::vector<EnvironmentEntry> environments;
  std::vector<PriorityRuleInfo> priorities;  // on the CPU
};

// The whole program `uper` with the extensions: parses the arguments, runs the command, prints
// errors, and returns the exit code. The extensions work in every command: train, evaluate,
// rollout, sweep, report, list. Handles SIGINT and SIGTERM for the process: a run is saved first.
// Call it once, from main().
int Main(int argc, char** argv, const Extensions& extensions = {});

}  // namespace uper
