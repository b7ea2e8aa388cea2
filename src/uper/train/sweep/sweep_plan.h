#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "uper/train/config/config.h"

namespace uper {

// Many training runs described by one TOML file (docs/sweeps.md):
//
//   agents, environments, seeds   lists; the same as agent.name, environment.name, seed in [grid]
//   [fixed]   keys of the configuration with one value for all runs
//   [grid]    keys with a list of values each: all combinations
//   [[list]]  further keys with values that belong together: each point with every combination
//   [slurm]   how the runs are submitted to Slurm

// One key of one run. `text` is what `uper train --set key=text` takes.
struct SweepSetting {
  std::string key;
  std::string text;
  std::string where;  // "sweep.toml:7"; empty: a default
};

struct SweepRun {
  std::string name;                    // of its folder: readable, unique in the sweep
  std::vector<SweepSetting> settings;  // every key that the file sets, and `threads`
  RunConfig config;                    // resolved and checked

  // The text of a setting, or an empty one.
  std::string_view Text(std::string_view key) const;
};

// The table [slurm]; sweep_plan.cc documents it. Empty texts and 0 mean Slurm's default.
struct SlurmOptions {
  std::string partition, account, qos, constraint, time, memory, extra;
  int cpus = 0;  // 0: as many as the runs have threads
  int gpus = 0;
  int max_running = 0;
  int warning_seconds = 120;
};

struct SweepPlan {
  std::vector<SweepRun> runs;  // at least one
  // Keys that distinguish the runs, for tables: environment, agent, the varying keys, seed.
  std::vector<std::string> columns;
  SlurmOptions slurm;

  // Most threads of a run; 0: one run uses every core.
  int MostThreads() const;
};

// Expands and checks the plan, except the environments' names, which only the registry can check.
// Throws Error(kUsage), with source and line, for an unknown key (with the nearest one), a wrong
// type, a value out of range, a key or a value given twice, or a list without values.
SweepPlan ParseSweepPlan(std::string_view text, const std::string& source);

}  // namespace uper
