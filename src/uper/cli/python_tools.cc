#include "uper/cli/python_tools.h"

#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "uper/base/error.h"

namespace uper::cli {
namespace {

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

CommandResult RunPython(const std::vector<std::string>& arguments) {
  const std::string program = PythonProgram();
  if (access(program.c_str(), X_OK) != 0) {
    throw Error(ErrorKind::kMissingData,
                "no Python at " + program + ": run `make setup`, or name one with UPER_PYTHON");
  }
  setenv("PYTHONPATH", (SourceFolder() / "python").c_str(), 1);
  std::vector<std::string> command{program};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return RunCommand(command);
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

}  // namespace uper::cli
