#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "uper/base/random.h"
#include "uper/base/threads/thread_pool.h"
#include "uper/cli/bench/bare_emulator_speed.h"
#include "uper/cli/bench/bench_peers.h"
#include "uper/cli/bench/bench_timing.h"
#include "uper/cli/commands.h"
#include "uper/cli/environment_flags.h"
#include "uper/cli/exit_code.h"
#include "uper/envs/atari/atari_environment.h"
#include "uper/envs/atari/rom_file.h"
#include "uper/envs/registry.h"
#include "uper/train/loop/actors.h"

namespace uper::cli {
namespace {

constexpr std::size_t kActionsDrawn = std::size_t{1} << 16;
constexpr int kPoolEnvironmentsPerThread = 4;

// The game of an Atari environment; null for others.
const atari::Game* GameOf(const std::string& env) {
  const EnvironmentEntry* entry = FindEnvironment(env);
  if (entry == nullptr || entry->protocol != "atari") return nullptr;
  return atari::FindGame(env.substr(env.find('/') + 1));
}

// Actions are drawn in advance, so that only the environment is timed.
std::vector<int> DrawActions(int actions, std::uint64_t index) {
  RandomStream stream(1, "bench actions", index);
  std::vector<int> drawn(kActionsDrawn);
  for (int& action : drawn) action = static_cast<int>(stream.UniformInt(actions));
  return drawn;
}

// Plays step after step.
class Player {
 public:
  virtual ~Player() = default;
  // Returns the frames played, without resets.
  virtual std::int64_t Play(std::int64_t steps) = 0;
};

class EnvironmentPlayer final : public Player {
 public:
  EnvironmentPlayer(const std::string& name, const EnvironmentOptions& options, std::uint64_t index)
      : environment_(MakeEnvironment(name, options, /*seed=*/1, index)),
        observation_(environment_->spec().observation_bytes()),
        actions_(DrawActions(environment_->spec().actions, index)) {
    environment_->Reset(observation_);
  }

  std::int64_t Play(std::int64_t steps) override {
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
  const std::vector<int> actions_;
  std::size_t position_ = 0;
};

// Plays the bare emulator: frames and its own resets, no observations.
class RawPlayer final : public Player {
 public:
  RawPlayer(const std::string& name, const EnvironmentOptions& options, std::uint64_t index)
      : emulator_(
            atari::MakeEmulator({.rom = atari::CheckedRom(RomFolderOf(options), *GameOf(name)),
                                 .full_action_set = options.full_action_set,
                                 .mode = options.mode,
                                 .difficulty = options.difficulty,
                                 .cached_reset = false,
                                 .ale_copies = true})),
        actions_(DrawActions(static_cast<int>(emulator_->actions().size()), index)),
        frames_per_step_(SpecFor(name, options).max_frames_per_step) {}

  std::int64_t Play(std::int64_t steps) override {
    for (std::int64_t i = 0; i < steps; ++i) {
      const int action = emulator_->actions()[actions_[position_++ % actions_.size()]];
      for (int frame = 0; frame < frames_per_step_; ++frame) {
        emulator_->Act(action);
        if (emulator_->game_over()) emulator_->Reset();
      }
    }
    return steps * frames_per_step_;
  }

 private:
  const std::unique_ptr<atari::Emulator> emulator_;
  const std::vector<int> actions_;
  const int frames_per_step_;
  std::size_t position_ = 0;
};

using Players = std::vector<std::unique_ptr<Player>>;

template <typename Kind>
Players MakePlayers(const BenchEnvOptions& options, int count) {
  const EnvironmentOptions settings = EnvironmentOptionsFrom(options.assignments);
  Players players;
  for (int i = 0; i < count; ++i) {
    players.push_back(std::make_unique<Kind>(options.env, settings, i));
  }
  return players;
}

// How many steps to play before the clock is read again, and how long to play in all.
struct Pace {
  std::int64_t steps_per_look = 1000;
  double seconds = 0.2;
};

// Frames per second of all players together, each on its own thread.
double MeasureApart(Players& players, const Pace& pace, const StopFlag& stop) {
  std::vector<std::int64_t> frames(players.size());
  const auto start = std::chrono::steady_clock::now();
  ParallelFor(static_cast<int>(players.size()), players.size(), stop, [&](std::size_t i) {
    std::int64_t count = 0;
    while (!stop && SecondsSince(start) < pace.seconds) {
      count += players[i]->Play(pace.steps_per_look);
    }
    frames[i] = count;
  });
  const double elapsed = SecondsSince(start);
  std::int64_t total = 0;
  for (const std::int64_t count : frames) total += count;
  return static_cast<double>(total) / elapsed;
}

// Frames per second of players that step together, as in vectorized acting.
double MeasureTogether(Players& players, ThreadPool& pool, const Pace& pace, const StopFlag& stop) {
  std::vector<std::int64_t> frames(players.size());
  const auto start = std::chrono::steady_clock::now();
  double elapsed = 0;
  while (elapsed < pace.seconds) {
    if (stop) throw Error(ErrorKind::kInterrupted, "interrupted");
    pool.ParallelTasks(static_cast<int>(players.size()),
                       [&](int i) { frames[i] += players[i]->Play(1); });
    elapsed = SecondsSince(start);
  }
  std::int64_t total = 0;
  for (const std::int64_t count : frames) total += count;
  return static_cast<double>(total) / elapsed;
}

void PrintLine(const std::string& name, const Timing& speed) {
  fmt::print("{:<44}{:>12.0f} [{:.0f}, {:.0f}]\n", name, speed.median, speed.low, speed.high);
}

int BenchBuiltIn(const BenchEnvOptions& options, const StopFlag& stop) {
  Players players = MakePlayers<EnvironmentPlayer>(options, options.threads);
  MeasureApart(players, {}, stop);  // warms up
  std::vector<double> values;
  for (int i = 0; i < options.repeats; ++i) values.push_back(MeasureApart(players, {}, stop));
  const Timing speed = Summary(std::move(values));
  if (options.json) {
    // A built-in game writes its observation as part of a step. No emulator lies below it, so its
    // raw speed is its speed.
    const nlohmann::ordered_json json = {{"env", options.env},
                                         {"threads", options.threads},
                                         {"frames_per_second", speed.median},
                                         {"frames_per_second_spread", SpreadJson(speed)},
                                         {"raw_frames_per_second", speed.median},
                                         {"raw_frames_per_second_spread", SpreadJson(speed)}};
    fmt::print("{}\n", json.dump());
  } else {
    fmt::print(
        "{}, {} thread{}: {:.0f} frames per second [{:.0f}, {:.0f}] (median, lowest and "
        "highest of {})\n",
        options.env, options.threads, options.threads == 1 ? "" : "s", speed.median, speed.low,
        speed.high, options.repeats);
  }
  return kExitDone;
}

struct AtariSpeeds {
  Timing ours, raw;       // one environment per thread
  Timing pool, raw_pool;  // all environments step together
  int environments = 0;
  nlohmann::json peers = nlohmann::json::array();
};

// The four take turns, so that other load on the machine affects all of them alike.
AtariSpeeds MeasureAtari(const BenchEnvOptions& options, const StopFlag& stop) {
  const Pace pace = {.steps_per_look = 25, .seconds = 0.5};
  AtariSpeeds speeds;
  speeds.environments = options.environments > 0 ? options.environments
                                                 : options.threads * kPoolEnvironmentsPerThread;
  Players ours = MakePlayers<EnvironmentPlayer>(options, options.threads);
  Players raw = MakePlayers<RawPlayer>(options, options.threads);
  Players together = MakePlayers<EnvironmentPlayer>(options, speeds.environments);
  Players raw_together = MakePlayers<RawPlayer>(options, speeds.environments);
  ThreadPool pool({.threads = options.threads, .idle_spins = kSpinsOnFreeCores});
  std::vector<double> our_values, raw_values, pool_values, raw_pool_values;
  for (int i = 0; i < options.repeats; ++i) {
    our_values.push_back(MeasureApart(ours, pace, stop));
    raw_values.push_back(MeasureApart(raw, pace, stop));
    pool_values.push_back(MeasureTogether(together, pool, pace, stop));
    raw_pool_values.push_back(MeasureTogether(raw_together, pool, pace, stop));
  }
  speeds.ours = Summary(std::move(our_values));
  speeds.raw = Summary(std::move(raw_values));
  speeds.pool = Summary(std::move(pool_values));
  speeds.raw_pool = Summary(std::move(raw_pool_values));
  if (options.peers) {
    speeds.peers = RunPeers("env_peers.py", {{"game", std::string(GameOf(options.env)->name)},
                                             {"threads", options.threads},
                                             {"environments", speeds.environments},
                                             {"seconds", pace.seconds},
                                             {"repeats", options.repeats}});
  }
  return speeds;
}

nlohmann::ordered_json Describe(const BenchEnvOptions& options, const AtariSpeeds& speeds) {
  return {{"env", options.env},
          {"threads", options.threads},
          {"frames_per_second", speeds.ours.median},
          {"frames_per_second_spread", SpreadJson(speeds.ours)},
          {"raw_frames_per_second", speeds.raw.median},
          {"raw_frames_per_second_spread", SpreadJson(speeds.raw)},
          {"environments", speeds.environments},
          {"pool_frames_per_second", speeds.pool.median},
          {"pool_frames_per_second_spread", SpreadJson(speeds.pool)},
          {"raw_pool_frames_per_second", speeds.raw_pool.median},
          {"raw_pool_frames_per_second_spread", SpreadJson(speeds.raw_pool)},
          {"peers", speeds.peers}};
}

int BenchAtari(const BenchEnvOptions& options, const StopFlag& stop) {
  const AtariSpeeds speeds = MeasureAtari(options, stop);
  if (options.json) {
    fmt::print("{}\n", Describe(options, speeds).dump());
    return kExitDone;
  }
  fmt::print("{}, {} thread{}, frames per second: median [lowest, highest] of {}\n", options.env,
             options.threads, options.threads == 1 ? "" : "s", options.repeats);
  PrintLine("one environment per thread", speeds.ours);
  PrintLine("the bare emulator, one per thread", speeds.raw);
  fmt::print("{:<44}{:>12.3f}\n", "environment / emulator", speeds.ours.median / speeds.raw.median);
  PrintLine(fmt::format("{} environments in step", speeds.environments), speeds.pool);
  PrintLine(fmt::format("{} bare emulators in step", speeds.environments), speeds.raw_pool);
  fmt::print("{:<44}{:>12.3f}\n", "environments / emulators, in step",
             speeds.pool.median / speeds.raw_pool.median);
  for (const nlohmann::json& peer : speeds.peers) {
    PrintLine(
        fmt::format("{}, {} in step", peer.at("name").get<std::string>(), speeds.environments),
        TimingFrom(peer.at("frames_per_second")));
  }
  return kExitDone;
}

}  // namespace

double BareEmulatorSpeed(const EnvironmentConfig& environment, double seconds,
                         const StopFlag& stop) {
  if (GameOf(environment.name) == nullptr) return 0;
  Players players;
  players.push_back(std::make_unique<RawPlayer>(environment.name, environment.options, 0));
  return MeasureApart(players, {.steps_per_look = 25, .seconds = seconds}, stop);
}

int RunBenchEnv(const BenchEnvOptions& options, const StopFlag& stop) {
  return GameOf(options.env) != nullptr ? BenchAtari(options, stop) : BenchBuiltIn(options, stop);
}

}  // namespace uper::cli
