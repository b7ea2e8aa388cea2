#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "apps/uper/bench_timing.h"
#include "apps/uper/commands.h"
#include "apps/uper/exit_code.h"
#include "uper/base/random.h"
#include "uper/envs/registry.h"

namespace uper {
namespace {

constexpr std::int64_t kStepsPerLook = 1000;
constexpr double kSecondsPerMeasurement = 0.2;

// One environment that plays actions drawn beforehand, so that only the environment is timed.
class Player {
 public:
  Player(const std::string& name, std::uint64_t index)
      : environment_(MakeEnvironment(name, {}, /*seed=*/1, index)),
        observation_(environment_->spec().observation_bytes()) {
    RandomStream stream(1, "bench actions", index);
    for (int& action : actions_) {
      action = static_cast<int>(stream.UniformInt(environment_->spec().actions));
    }
    environment_->Reset(observation_);
  }

  // Returns the frames played, resets not counted.
  std::int64_t Play(std::int64_t steps) {
    std::int64_t frames = 0;
    for (std::int64_t i = 0; i < steps; ++i) {
      const TimeStep step =
          environment_->Step(actions_[position_++ % actions_.size()], observation_);
      frames += step.frames;
      if (step.last()) environment_->Reset(observation_);
    }
    return frames;
  }

 private:
  const std::unique_ptr<Environment> environment_;
  std::vector<std::byte> observation_;
  std::vector<int> actions_ = std::vector<int>(std::size_t{1} << 16);
  std::size_t position_ = 0;
};

// Frames a second of all players together, each on its thread for a given time.
double MeasureOnce(std::vector<std::unique_ptr<Player>>& players, const StopFlag& stop) {
  std::vector<std::int64_t> frames(players.size());
  const auto start = std::chrono::steady_clock::now();
  ParallelFor(static_cast<int>(players.size()), players.size(), stop, [&](std::size_t i) {
    std::int64_t count = 0;
    while (!stop && SecondsSince(start) < kSecondsPerMeasurement) {
      count += players[i]->Play(kStepsPerLook);
    }
    frames[i] = count;
  });
  const double elapsed = SecondsSince(start);
  std::int64_t total = 0;
  for (const std::int64_t count : frames) total += count;
  return static_cast<double>(total) / elapsed;
}

}  // namespace

int BenchEnv(const BenchEnvOptions& options, const StopFlag& stop) {
  std::vector<std::unique_ptr<Player>> players;
  for (int i = 0; i < options.threads; ++i) {
    players.push_back(std::make_unique<Player>(options.env, i));
  }
  MeasureOnce(players, stop);  // warms up
  std::vector<double> values;
  for (int i = 0; i < options.repeats; ++i) values.push_back(MeasureOnce(players, stop));
  const Timing speed = Summary(std::move(values));
  if (options.json) {
    // A built-in game draws its observation as part of a step: there is nothing below it to time,
    // so its raw speed is its speed.
    const nlohmann::ordered_json json = {{"env", options.env},
                                         {"threads", options.threads},
                                         {"frames_per_second", speed.median},
                                         {"frames_per_second_spread", SpreadJson(speed)},
                                         {"raw_frames_per_second", speed.median},
                                         {"raw_frames_per_second_spread", SpreadJson(speed)}};
    fmt::print("{}\n", json.dump());
  } else {
    fmt::print(
        "{}, {} thread{}: {:.0f} frames a second [{:.0f}, {:.0f}] (median, lowest and "
        "highest of {})\n",
        options.env, options.threads, options.threads == 1 ? "" : "s", speed.median, speed.low,
        speed.high, options.repeats);
  }
  return kExitDone;
}

}  // namespace uper
