#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "uper/base/parallel.h"

namespace uper {

// One options struct and one function a command; command_line.cc fills the struct. A command
// prints its result on standard output (one JSON object with `json`) and everything else on
// standard error, and returns the exit code or throws Error.

struct ReproduceOptions {
  std::string figure;             // an id, or "all"
  std::vector<std::string> runs;  // training runs, for the figures that need them
  std::filesystem::path folder;   // empty: results, or results/FIGURE
  int seeds = 0;                  // 0: each figure's own default
  int jobs = 0;                   // 0: all cores
  bool strict = false;            // exit 1 when a claim fails
  bool json = false;
  std::vector<std::string> assignments;  // "key=value"
};
int Reproduce(const ReproduceOptions& options, const StopFlag& stop);

struct ListOptions {
  std::string what;  // envs, priorities or figures
  bool json = false;
};
int List(const ListOptions& options);

struct BenchReplayOptions {
  std::int64_t entries = 1'000'000;
  int batch = 256;
  int repeats = 7;
  bool peers = true;  // also time cpprb and TorchRL where they are installed
  bool json = false;
};
int BenchReplay(const BenchReplayOptions& options, const StopFlag& stop);

}  // namespace uper
