#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "uper/cli/sweep/child_process.h"

namespace uper::cli {

// The Python of the project: .venv of the source tree, or $UPER_PYTHON. It finds the modules in
// python/.
std::filesystem::path SourceFolder();
std::filesystem::path PythonProgram();

// Runs Python with these arguments and waits. Its standard error goes to ours. Throws
// Error(kMissingData) if there is no Python.
CommandResult RunPython(const std::vector<std::string>& arguments);

// Draws figure.png and figure.svg from the folder's CSV files. Throws Error if that fails.
void DrawFigure(const std::string& figure, const std::filesystem::path& folder);

// Draws the curves of a training run from its metrics.csv into run/plots.
void DrawRun(const std::filesystem::path& run);

// Writes folder/index.html with all figures below the folder and their claims.
void WriteIndexPage(const std::filesystem::path& folder);

// Draws the pictures of `uper report` and writes folder/report.html from its files.
void WriteReportPage(const std::filesystem::path& folder);

}  // namespace uper::cli
