#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace uper {

// Path of the program that runs, from where it was started.
std::filesystem::path ThisProgram();

// This program with other arguments in the place of this process, also if its file has been
// replaced: a sweep goes on with the program that it began with. Returns by Error(kResources) only.
[[noreturn]] void BecomeThisProgram(const std::vector<std::string>& command);

struct ChildOptions {
  std::vector<std::string> command;  // arguments of this program; the first is its name
  std::filesystem::path log;         // its standard output and error are appended here
  std::vector<int> cpus;             // where it may run; empty: everywhere
};

// Starts this program, as BecomeThisProgram() does, in a process in a group of its own (Ctrl-C
// reaches only us), which is told to stop (SIGTERM) when this process dies. Throws
// Error(kResources) if that is impossible. A program that cannot be executed ends with 127.
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
