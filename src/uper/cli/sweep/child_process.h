#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace uper::cli {

// The path that this program was started from.
std::filesystem::path ThisProgram();

// Replaces this process by this program with other arguments. It uses the program that is running,
// even if its file was replaced, so that a sweep ends with the program that it began with. Throws
// Error(kResources) if that fails.
[[noreturn]] void BecomeThisProgram(const std::vector<std::string>& command);

struct ChildOptions {
  std::vector<std::string> command;  // the program's name, then its arguments
  std::filesystem::path log;         // standard output and error are appended here
  std::vector<int> cpus;             // processors it may use; empty: all
};

// Starts the running program in a child process. The child has its own process group, so Ctrl-C
// does not reach it. It gets SIGTERM when this process dies. Throws Error(kResources) if it cannot
// be started. A program that cannot be executed ends with 127.
pid_t StartChild(const ChildOptions& options);

// The child's exit status, or 128 + signal number if a signal ended it. Empty while it runs.
std::optional<int> ExitStatusIfEnded(pid_t child);

// The processors this process may run on.
std::vector<int> UsableCpus();

// Runs a command and waits for its end. Its standard error goes to ours, or nowhere if `quiet`.
// Throws Error(kMissingData) if the program is not on the path.
struct CommandResult {
  int exit_status = 0;  // 128 + signal number if a signal ended it
  std::string output;   // its standard output
};
CommandResult RunCommand(const std::vector<std::string>& command, bool quiet = false);

}  // namespace uper::cli
