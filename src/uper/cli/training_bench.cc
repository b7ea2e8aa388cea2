#include "uper/cli/training_bench.h"

#include <fmt/format.h>

#include "uper/cli/bench/bench_timing.h"
#include "uper/cli/temporary_folder.h"
#include "uper/train/config/resolve_config.h"
#include "uper/train/run/run_setup.h"

namespace uper {
namespace {

using experiments::IterationTime;
using experiments::TimedTraining;

std::vector<std::string> DevicesHere() {
  std::vector<std::string> devices{"cpu"};
  RunConfig config;
  config.device = DeviceChoice::kCuda;
  try {
    ResolveDevice(config);
    devices.emplace_back("cuda");
  } catch (const Error&) {  // there is none
  }
  return devices;
}

// An iteration is what lies between two rows of the log; saving comes after the last one.
RunConfig ConfigOf(const TimedTraining& training, int threads) {
  const std::int64_t frames =
      static_cast<std::int64_t>(training.iterations) * training.iteration_frames;
  ConfigInputs inputs{.flags = {{"figure", "agent.name", training.agent},
                                {"figure", "environment.name", training.environment},
                                {"figure", "device", training.device},
                                {"figure", "seed", std::to_string(training.seed)},
                                {"figure", "frames", std::to_string(frames)},
                                {"figure", "threads", std::to_string(threads)}}};
  for (const auto& [key, value] : training.settings) inputs.flags.push_back({"figure", key, value});
  RunConfig config = ResolveConfig(inputs);
  config.checkpoint_every_frames = config.frames;
  config.log_every_frames = training.iteration_frames;
  FillAutomaticKeys(config, FramesPerStepOf(config));
  return config;
}

std::vector<IterationTime> TimeIterations(const TimedTraining& training, int threads,
                                          const StopFlag& stop) {
  const RunConfig config = ConfigOf(training, threads);
  const TemporaryFolder folder;
  ThreadPool pool(threads);
  std::vector<IterationTime> totals;  // since the start
  const Trainer* running = nullptr;
  auto start = std::chrono::steady_clock::now();
  const auto record = [&](const TrainingProgress& progress) {
    if (progress.row == nullptr) return;
    if (progress.frames == 0) {  // the evaluation before the first iteration
      start = std::chrono::steady_clock::now();
      return;
    }
    totals.push_back(
        {.seconds = SecondsSince(start), .environment_seconds = running->times().environment});
  };
  Trainer trainer(config, RunFolder(folder.path()), MakeTrainerParts(config, pool),
                  {.progress = record, .warn = [](const std::string& message) {
                     fmt::print(stderr, "uper: {}\n", message);
                   }});
  running = &trainer;
  start = std::chrono::steady_clock::now();
  if (!trainer.Run(stop)) throw Error(ErrorKind::kInterrupted, "interrupted");
  for (std::size_t i = totals.size(); i-- > 1;) {
    totals[i].seconds -= totals[i - 1].seconds;
    totals[i].environment_seconds -= totals[i - 1].environment_seconds;
  }
  return totals;
}

}  // namespace

experiments::TrainingBench MakeTrainingBench(int threads, const StopFlag& stop) {
  return {.devices = DevicesHere(), .time = [threads, &stop](const TimedTraining& training) {
            return TimeIterations(training, threads, stop);
          }};
}

}  // namespace uper
