#include "experiments/framework/timed_training.h"

#include <chrono>
#include <cstdint>

#include "uper/base/error.h"
#include "uper/base/files/temporary_folder.h"
#include "uper/base/seconds_since.h"
#include "uper/train/config/resolve_config.h"
#include "uper/train/run/run_setup.h"

namespace uper::experiments {
namespace {

// An iteration lies between two rows of the log. The only checkpoint comes after the last one.
RunConfig ConfigFor(const TimedTraining& training, int threads) {
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

// From times since the start to times per iteration.
void SubtractPredecessors(std::vector<IterationTime>& times) {
  for (std::size_t i = times.size(); i-- > 1;) {
    times[i].seconds -= times[i - 1].seconds;
    times[i].environment_seconds -= times[i - 1].environment_seconds;
  }
}

}  // namespace

std::vector<std::string> UsableDevices() {
  std::vector<std::string> devices{"cpu"};
  RunConfig config;
  config.device = DeviceChoice::kCuda;
  try {
    ResolveDevice(config);
    devices.emplace_back("cuda");
  } catch (const Error&) {  // this machine or build has no GPU
  }
  return devices;
}

std::vector<IterationTime> TimeTraining(const TimedTraining& training, int threads,
                                        const StopFlag& stop,
                                        const std::function<void(const std::string&)>& warn) {
  const RunConfig config = ConfigFor(training, threads);
  const TemporaryFolder folder;
  ThreadPool pool(threads);
  std::vector<IterationTime> times;  // since the start
  const Trainer* running = nullptr;
  auto start = std::chrono::steady_clock::now();
  const auto record = [&](const TrainingProgress& progress) {
    if (progress.row == nullptr) return;
    if (progress.frames == 0) {  // the evaluation before the first iteration does not count
      start = std::chrono::steady_clock::now();
      return;
    }
    times.push_back(
        {.seconds = SecondsSince(start), .environment_seconds = running->times().environment});
  };
  Trainer trainer(config, RunFolder(folder.path()).trainer_files(), MakeTrainerParts(config, pool),
                  {.progress = record, .warn = warn});
  running = &trainer;
  start = std::chrono::steady_clock::now();
  if (!trainer.Run(stop)) throw Error(ErrorKind::kInterrupted, "interrupted");
  SubtractPredecessors(times);
  return times;
}

}  // namespace uper::experiments
