#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace uper {

// Path of the program that runs.
std::filesystem::path ThisProgram();

struct ChildOptions {
  std::vector<std::string> command;  // program and arguments; no shell is between
  std::filesystem::path log;         // its standard output and error are appended here
  std::vector<int> cpus;             // where it may run; empty: everywhere
};

// Starts a process in a group of its own (Ctrl-C reaches only us), which is told to stop (SIGTERM)
// when this process dies. Throws Error(kResources) if that is impossible. A command that cannot be
// executed ends with 127.
pid_t StartChild(const ChildOptions& options);

// Its exit status, 128 + signal number when a signal ended it; nothing while it runs.
std::optional<int> ExitStatusIfEnded(pid_t child);

// The processors this process may run on.
std::vector<int> UsableCpus();

// Runs a command to its end; its standard error goes to ours. Throws Error(kMissingData) if the
// program is not on the path.
struct CommandResult {
  int exit_status = 0;  // 128 + signal number when a signal ended it
  std::string output;   // its standard output
};
CommandResult RunCommand(const std::vector<std::string>& command, bool quiet = false);

}  // namespace uper
