#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "uper/base/threads/parallel.h"

namespace uper::cli {

// Each command has one options struct and one function. command_line.cc fills the struct. A command
// prints its result on standard output (one JSON object with `json`) and everything else on
// standard error. It returns the exit code or throws Error.

struct TrainOptions {
  std::filesystem::path config_file;             // empty: none
  std::string agent, env, frames, seed, device;  // empty: not given
  std::filesystem::path folder;                  // empty: runs/ENV-AGENT-SEED
  std::vector<std::string> assignments;          // "key=value"
  std::vector<std::string> command;              // as typed, for run.json
  bool plots = true;                             // draw the curves when the run has ended
  bool json = false;
  std::FILE* log = nullptr;  // gets all output; null: standard output and standard error
};
int RunTrain(const TrainOptions& options, const StopFlag& stop);

struct EvaluateOptions {
  std::filesystem::path run;
  std::int64_t episodes = 0;  // 0: no limit; both 0: 100 episodes, or 1 with a video
  std::int64_t frames = 0;
  std::uint64_t seed = 1;
  std::string against;          // "random", or empty for no comparison
  std::filesystem::path video;  // .mp4 or .png; empty: none
  bool json = false;
};
int RunEvaluate(const EvaluateOptions& options, const StopFlag& stop);

struct RolloutOptions {
  std::string env;
  std::string policy;             // "random", or empty with an action file
  std::filesystem::path actions;  // one action index per line
  std::int64_t episodes = 0;      // 0: no limit; both 0: 100 episodes
  std::int64_t steps = 0;
  int environments = 1;  // they share the episodes and steps
  int threads = 0;       // 0: one per core
  std::uint64_t seed = 1;
  std::filesystem::path dump;            // .npz; empty: none
  std::vector<std::string> assignments;  // environment.* only
  bool json = false;
};
int RunRollout(const RolloutOptions& options, const StopFlag& stop);

struct RunOptions {
  std::filesystem::path run;
  bool json = false;
};
int RunInspect(const RunOptions& options);
int RunVerify(const RunOptions& options);

struct DoctorOptions {
  bool json = false;
};
int RunDoctor(const DoctorOptions& options);

struct DumpStepOptions {
  std::string agent;
  std::string network = "minatar";  // or nature
  int actions = 6;
  int members = 0;  // 0: those of the agent
  int outputs = 0;
  int batch = 32;
  int updates = 1;  // in a row, each on its own batch
  std::uint64_t seed = 1;
  std::string device = "cpu";
  std::vector<std::string> assignments;
  std::filesystem::path out;  // .npz
};
int RunDumpStep(const DumpStepOptions& options);

struct ReproduceOptions {
  std::string figure;             // an id, or "all"
  std::vector<std::string> runs;  // training runs, for figures that need them
  std::filesystem::path folder;   // empty: results, or results/FIGURE
  int seeds = 0;                  // 0: the default of each figure
  int jobs = 0;                   // 0: all cores
  bool strict = false;            // exit 1 when a claim fails
  bool json = false;
  std::vector<std::string> assignments;  // "key=value"
};
int RunReproduce(const ReproduceOptions& options, const StopFlag& stop);

struct ReportOptions {
  std::vector<std::string> runs;     // run folders, or folders of them
  std::filesystem::path folder;      // for the files; empty: results/report
  std::string baseline;              // compare all with this agent; empty: UPER with all others
  std::filesystem::path references;  // CSV env,random,reference; empty: the built-in scores
  int window = 10;                   // evaluations in the trailing mean
  bool published = false;            // also draw published curves
  bool partial = false;              // accept unfinished runs
  bool json = false;
};
int RunReport(const ReportOptions& options, const StopFlag& stop);

struct SweepOptions {
  std::filesystem::path file;
  std::filesystem::path folder;  // empty: sweeps/ and the file's name without .toml
  int jobs = 0;                  // 0: as many as there are cores for
  bool slurm = false;            // submit an array job instead of running here
  bool summary = false;          // only print the state of the sweep
  int only = 0;                  // make only this run, here, counted from 1; 0: all
  bool json = false;
};
int RunSweep(const SweepOptions& options, const StopFlag& stop);

struct ListOptions {
  std::string what;  // envs, agents, priorities, figures or keys
  bool json = false;
  bool markdown = false;  // the whole table of keys, columns or priorities
};
int RunList(const ListOptions& options);

struct BenchReplayOptions {
  std::int64_t entries = 1'000'000;
  int batch = 256;
  int repeats = 7;
  bool peers = true;  // also time cpprb and TorchRL where they are installed
  bool json = false;
};
int RunBenchReplay(const BenchReplayOptions& options, const StopFlag& stop);

struct BenchLearnerOptions {
  std::string agent = "qr-ens-uper";
  std::string network = "minatar";  // or nature
  int actions = 6;
  int batch = 32;
  int threads = 0;  // 0: all cores
  int repeats = 7;
  std::string device = "cpu";
  bool peers = true;         // also time PyTorch
  bool parts = false;        // print the time of each part of an update instead
  std::string instructions;  // instruction set of the CPU kernels; empty: the best
  std::vector<std::string> assignments;
  bool json = false;
};
int RunBenchLearner(const BenchLearnerOptions& options, const StopFlag& stop);

struct BenchEnvOptions {
  std::string env = "minatar/breakout";
  int threads = 1;
  int environments = 0;  // that step together (Atari); 0: four per thread
  int repeats = 7;
  bool peers = true;                     // Atari: also time EnvPool and ALE's vector environment
  std::vector<std::string> assignments;  // environment.* only
  bool json = false;
};
int RunBenchEnv(const BenchEnvOptions& options, const StopFlag& stop);

struct BenchTrainOptions {
  std::string env = "minatar/breakout";
  std::string agent = "dqn";
  std::int64_t frames = 20'000;
  std::int64_t replay_transitions = 0;  // stored before the start; if any, saving is timed
  int threads = 0;
  int environments = 0;  // 0: as configured
  int runs = 1;          // at the same time in this process, with consecutive seeds
  std::string device;    // "": as configured
  std::vector<std::string> assignments;
  bool json = false;
};
int RunBenchTrain(const BenchTrainOptions& options, const StopFlag& stop);

}  // namespace uper::cli
