#include "apps/uper/python_tools.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "uper/base/error.h"

extern char** environ;

namespace uper {
namespace {

std::string ReadAll(int descriptor) {
  std::string content;
  char block[4096];
  while (true) {
    const ssize_t count = read(descriptor, block, sizeof(block));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return content;
    content.append(block, static_cast<std::size_t>(count));
  }
}

int WaitFor(pid_t process) {
  int status = 0;
  while (waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void RunPlots(const std::vector<std::string>& arguments, const std::string& what) {
  const int status = RunPython(arguments).exit_status;
  if (status == 0) return;
  if (status == 128 + SIGINT || status == 128 + SIGTERM) {
    throw Error(ErrorKind::kInterrupted, "interrupted while drawing");
  }
  throw Error(ErrorKind::kInternal, "cannot draw " + what +
                                        ": the plotting program failed (its message is above); "
                                        "the data files are complete. `make setup` installs "
                                        "matplotlib into .venv");
}

}  // namespace

std::filesystem::path SourceFolder() { return UPER_SOURCE_DIR; }

std::filesystem::path PythonProgram() {
  if (const char* chosen = std::getenv("UPER_PYTHON")) return chosen;
  return SourceFolder() / ".venv/bin/python";
}

ProcessResult RunPython(const std::vector<std::string>& arguments) {
  const std::string program = PythonProgram();
  if (access(program.c_str(), X_OK) != 0) {
    throw Error(ErrorKind::kMissingData,
                "no Python at " + program + ": run `make setup`, or name one with UPER_PYTHON");
  }
  setenv("PYTHONPATH", (SourceFolder() / "python").c_str(), 1);
  std::vector<char*> argv{const_cast<char*>(program.c_str())};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);

  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw Error(ErrorKind::kResources, std::strerror(errno));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  pid_t process = 0;
  const int error = posix_spawn(&process, program.c_str(), &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  ProcessResult result;
  if (error == 0) {
    result.output = ReadAll(ends[0]);
    result.exit_status = WaitFor(process);
  }
  close(ends[0]);
  if (error != 0) {
    throw Error(ErrorKind::kResources, "cannot start " + program + ": " + std::strerror(error));
  }
  return result;
}

void DrawFigure(const std::string& figure, const std::filesystem::path& folder) {
  RunPlots({"-m", "uper_plots", figure, folder.string()}, figure);
}

void DrawRun(const std::filesystem::path& run) {
  RunPlots({"-m", "uper_plots.run", run.string()}, "the curves of " + run.string());
}

void WriteIndexPage(const std::filesystem::path& folder) {
  RunPlots({"-m", "uper_plots.index", folder.string()}, "the index page");
}

void WriteReportPage(const std::filesystem::path& folder) {
  RunPlots({"-m", "uper_plots.report", folder.string()}, "the report");
}

}  // namespace uper
