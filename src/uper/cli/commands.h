#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "uper/base/threads/parallel.h"

namespace uper {

// One options struct and one function a command; command_line.cc fills the struct. A command
// prints its result on standard output (one JSON object with `json`) and everything else on
// standard error, and returns the exit code or throws Error.

struct TrainOptions {
  std::filesystem::path config_file;             // empty: none
  std::string agent, env, frames, seed, device;  // empty: not given
  std::filesystem::path folder;                  // empty: runs/ENV-AGENT-SEED
  std::vector<std::string> assignments;          // "key=value"
  std::vector<std::string> command;              // as typed, for run.json
  bool plots = true;                             // draw the curves when the run has ended
  bool json = false;
  std::FILE* log = nullptr;  // takes all that is printed; null: standard output and error
};
int Train(const TrainOptions& options, const StopFlag& stop);

struct EvaluateOptions {
  std::filesystem::path run;
  std::int64_t episodes = 0;  // 0: no limit; both 0: 100 episodes, or 1 with a video
  std::int64_t frames = 0;
  std::uint64_t seed = 1;
  std::string against;          // "random", or empty: nobody
  std::filesystem::path video;  // .mp4 or .png; empty: none
  bool json = false;
};
int EvaluateRun(const EvaluateOptions& options, const StopFlag& stop);

struct RolloutOptions {
  std::string env;
  std::string policy;             // "random", or empty with an action file
  std::filesystem::path actions;  // one action index a line
  std::int64_t episodes = 0;      // 0: no limit; both 0: 100 episodes
  std::int64_t steps = 0;
  int environments = 1;  // that share them
  int threads = 0;       // 0: one a core
  std::uint64_t seed = 1;
  std::filesystem::path dump;            // .npz; empty: none
  std::vector<std::string> assignments;  // environment.* only
  bool json = false;
};
int Rollout(const RolloutOptions& options, const StopFlag& stop);

struct RunOptions {
  std::filesystem::path run;
  bool json = false;
};
int Inspect(const RunOptions& options);
int Verify(const RunOptions& options);

struct DoctorOptions {
  bool json = false;
};
int Doctor(const DoctorOptions& options);

struct DumpStepOptions {
  std::string agent;
  std::string network = "minatar";  // or nature
  int actions = 6;
  int members = 0;  // 0: the agent's own
  int outputs = 0;
  int batch = 32;
  int updates = 1;  // in a row, each on a batch of its own
  std::uint64_t seed = 1;
  std::string device = "cpu";
  std::vector<std::string> assignments;
  std::filesystem::path out;  // .npz
};
int DumpStep(const DumpStepOptions& options);

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

struct ReportOptions {
  std::vector<std::string> runs;     // run folders, or folders of them
  std::filesystem::path folder;      // for the files; empty: results/report
  std::string baseline;              // compare all with this agent; empty: UPER with all others
  std::filesystem::path references;  // CSV env,random,reference; empty: those built in
  int window = 10;                   // evaluations in the trailing mean
  bool published = false;            // published curves behind
  bool partial = false;              // take unfinished runs too
  bool json = false;
};
int Report(const ReportOptions& options, const StopFlag& stop);

struct SweepOptions {
  std::filesystem::path file;
  std::filesystem::path folder;  // empty: sweeps/ and the file's name without .toml
  int jobs = 0;                  // 0: as many as the cores hold
  bool slurm = false;            // submit an array job instead of running here
  bool summary = false;          // only say what is there
  int only = 0;                  // run this one here and nothing else, counted from 1; 0: all
  bool json = false;
};
int Sweep(const SweepOptions& options, const StopFlag& stop);

struct ListOptions {
  std::string what;  // envs, agents, priorities, figures or keys
  bool json = false;
  bool markdown = false;  // the whole table of keys, columns or priorities
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

struct BenchLearnerOptions {
  std::string agent = "qr-ens-uper";
  std::string network = "minatar";  // or nature
  int actions = 6;
  int batch = 32;
  int threads = 0;  // 0: all cores
  int repeats = 7;
  std::string device = "cpu";
  bool peers = true;         // also time PyTorch
  bool parts = false;        // where the time goes, instead
  std::string instructions;  // of the CPU's kernels; empty: the best
  std::vector<std::string> assignments;
  bool json = false;
};
int BenchLearner(const BenchLearnerOptions& options, const StopFlag& stop);

struct BenchEnvOptions {
  std::string env = "minatar/breakout";
  int threads = 1;
  int environments = 0;  // of the pool that steps together (Atari); 0: four a thread
  int repeats = 7;
  bool peers = true;                     // Atari: also time EnvPool and ALE's vector environment
  std::vector<std::string> assignments;  // environment.* only
  bool json = false;
};
int BenchEnv(const BenchEnvOptions& options, const StopFlag& stop);

struct BenchTrainOptions {
  std::string env = "minatar/breakout";
  std::string agent = "dqn";
  std::int64_t frames = 20'000;
  std::int64_t replay_transitions = 0;  // in memory before; saving is measured then
  int threads = 0;
  int environments = 0;  // 0: as configured
  int runs = 1;          // side by side in this process, each with the next seed
  std::string device;    // "": as configured
  std::vector<std::string> assignments;
  bool json = false;
};
int BenchTrain(const BenchTrainOptions& options, const StopFlag& stop);

}  // namespace uper
