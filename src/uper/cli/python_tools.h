#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "uper/cli/sweep/child_process.h"

namespace uper {

// The Python side of the project: .venv of the source tree (or $UPER_PYTHON), with python/ and
// benchmarks/ on its path.
std::filesystem::path SourceFolder();
std::filesystem::path PythonProgram();

// Runs Python with these arguments and waits; its standard error goes to ours.
// Throws Error(kMissingData) when there is no Python to run.
CommandResult RunPython(const std::vector<std::string>& arguments);

// Draws figure.png and figure.svg in the folder from its CSV files. Throws Error when that fails.
void DrawFigure(const std::string& figure, const std::filesystem::path& folder);

// Draws the curves of a training run from its metrics.csv into run/plots.
void DrawRun(const std::filesystem::path& run);

// Writes folder/index.html: all figures below the folder with their claims.
void WriteIndexPage(const std::filesystem::path& folder);

// Draws the pictures of `uper report` and writes folder/report.html from its files.
void WriteReportPage(const std::filesystem::path& folder);

}  // namespace uper
