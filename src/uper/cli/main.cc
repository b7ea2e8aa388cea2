#include "uper/cli/main.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <exception>
#include <new>

#include "uper/base/error.h"
#include "uper/cli/command_line.h"
#include "uper/cli/exit_code.h"

namespace uper {
namespace {

StopFlag stop_requested = false;

// The second Ctrl-C ends the program at once. A second SIGTERM does not: a batch system may send it
// to every process of a job while the job's script passes it on.
void HandleSignal(int signal) {
  if (stop_requested.exchange(true) && signal == SIGINT) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
}

int Report(const char* message, int exit_code) {
  std::fprintf(stderr, "uper: %s\n", message);
  return exit_code;
}

// Fails if not all output could be written, unless its reader has closed the pipe.
int Finish(int exit_code) {
  errno = 0;
  const bool arrived = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  if (arrived || errno == EPIPE || exit_code != cli::kExitDone) return exit_code;
  return Report("standard output could not be written; is the disk full?", cli::kExitResources);
}

}  // namespace

int Main(int argc, char** argv, const Extensions& extensions) {
  std::signal(SIGINT, HandleSignal);
  std::signal(SIGTERM, HandleSignal);
  std::signal(SIGPIPE, SIG_IGN);  // a write error is reported where it happens
  std::signal(SIGXFSZ, SIG_IGN);
  try {
    for (const EnvironmentEntry& entry : extensions.environments) RegisterEnvironment(entry);
    for (const PriorityRuleInfo& rule : extensions.priorities) RegisterPriorityRule(rule);
    return Finish(cli::RunCommandLine(argc, argv, stop_requested));
  } catch (const Error& error) {
    return Report(error.what(), cli::ExitCodeFor(error.kind()));
  } catch (const std::bad_alloc&) {
    return Report("out of memory; use fewer --jobs or smaller sizes", cli::kExitResources);
  } catch (const std::exception& error) {
    // A large output is written before the end, so a write error may have come first.
    const bool output_failed = std::ferror(stdout) != 0;
    return Report(error.what(), output_failed ? cli::kExitResources : cli::kExitFailure);
  }
}

}  // namespace uper
