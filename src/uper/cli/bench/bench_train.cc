#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "uper/base/files/temporary_folder.h"
#include "uper/base/random.h"
#include "uper/cli/bench/alternating_baseline.h"
#include "uper/cli/bench/bare_emulator_speed.h"
#include "uper/cli/bench/bench_peers.h"
#include "uper/cli/bench/bench_timing.h"
#include "uper/cli/commands.h"
#include "uper/cli/exit_code.h"
#include "uper/cli/warn_cpu_fallback.h"
#include "uper/envs/registry.h"
#include "uper/nn/cpu/kernels/simd_info.h"
#include "uper/train/config/config_choices.h"
#include "uper/train/config/resolve_config.h"
#include "uper/train/run/run_setup.h"

namespace uper::cli {
namespace {

constexpr std::int64_t kMostWarmUpTransitions = 100;

constexpr std::int64_t kSaves = 5;     // checkpoints of a run with a filled replay memory
constexpr double kTurnSeconds = 0.15;  // of the bare emulator between two turns of training
constexpr double kBareSeconds = 2;     // of the bare emulator before and after other runs

// The agent's own configuration except for these keys. Learning starts at frame 100 or before
// (--set may change that). On Atari exploration is at its final value. There is one log row, at the
// end, and no evaluation. The one checkpoint at the end is not timed. With a filled replay memory
// there are kSaves checkpoints, and they are timed.
RunConfig ConfigOf(const BenchTrainOptions& options) {
  const std::int64_t warm_up =
      std::clamp<std::int64_t>(options.frames / 10, 1, kMostWarmUpTransitions);
  ConfigInputs inputs{
      .flags = {{"--agent", "agent.name", options.agent},
                {"--env", "environment.name", options.env},
                {"--frames", "frames", std::to_string(options.frames)},
                {"bench train", "replay.minimum_transitions", std::to_string(warm_up)},
                {"--threads", "threads", std::to_string(options.threads)}},
      .settings = options.assignments};
  const EnvironmentEntry* environment = FindEnvironment(options.env);
  // As in most of a run, few actions are random.
  if (environment != nullptr && environment->protocol == "atari") {
    inputs.flags.push_back({"bench train", "exploration.start_frames", "0"});
    inputs.flags.push_back({"bench train", "exploration.end_frames", "1"});
  }
  if (options.environments > 0) {
    inputs.flags.push_back(
        {"--environments", "environments", std::to_string(options.environments)});
  }
  if (!options.device.empty()) inputs.flags.push_back({"--device", "device", options.device});
  RunConfig config = ResolveConfig(inputs);
  if (options.runs > 1 && config.threads == 0) config.threads = 1;
  WarnCpuFallback(config);
  config.checkpoint_every_frames = options.replay_transitions > 0
                                       ? std::max<std::int64_t>(1, config.frames / kSaves)
                                       : config.frames;
  config.log_every_frames = config.frames;
  config.evaluate_every_frames = 0;
  FillAutomaticKeys(config, FramesPerStepOf(config));
  return config;
}

struct TrainTimes {
  std::int64_t frames = 0;
  std::int64_t updates = 0;
  double seconds = 0;  // without the last save and the turns of the bare emulator
  TimeBreakdown spent;
  checkpoint::SaveTimes saves;
  double final_save_seconds = 0;
  // Only with a filled replay memory.
  double fill_seconds = 0;
  double first_save_seconds = 0;  // saves the whole replay memory at once
  double restore_seconds = 0;

  double FramesPerSecond() const { return static_cast<double>(frames) / seconds; }
  double UpdatesPerSecond() const { return static_cast<double>(updates) / seconds; }
};

// Runs wait here for each other. After one fails, no run waits.
class StartBarrier {
 public:
  explicit StartBarrier(int runs) : missing_(runs) {}
  // Returns whether all runs have arrived without failure.
  bool Await(const StopFlag& stop) const {
    while (missing_ > 0 && !failed_ && !stop) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return missing_ <= 0 && !failed_;
  }

  void Arrive(bool well) {
    if (!well) failed_ = true;
    --missing_;
  }

 private:
  std::atomic<int> missing_;
  std::atomic<bool> failed_ = false;
};

struct ArriveAtEnd {
  StartBarrier& barrier;
  const int exceptions = std::uncaught_exceptions();

  ~ArriveAtEnd() { barrier.Arrive(/*well=*/std::uncaught_exceptions() == exceptions); }
};

TrainerCallbacks WarningsOnly() {
  return {.progress = {},
          .warn = [](const std::string& message) { fmt::print(stderr, "uper: {}\n", message); }};
}

// Prints warnings and steers the runs. An interruption or the end of one run sets `over`, which
// ends all runs. `baseline` (may be null) is called between steps.
TrainerCallbacks CallbacksOf(AlternatingBaseline* baseline, StopFlag& over, const StopFlag& stop) {
  TrainerCallbacks callbacks = WarningsOnly();
  callbacks.progress = [baseline, &over, &stop](const TrainingProgress& now) {
    if (stop || now.frames >= now.total_frames) over = true;
    if (baseline != nullptr) baseline->Next(now.frames);
  };
  return callbacks;
}

// Fills the replay memory with transitions of random actions.
void FillReplay(const RunConfig& config, std::int64_t transitions, TransitionStore& store,
                const StopFlag& stop) {
  constexpr std::uint64_t kIndex = std::uint64_t{1} << 47;  // no other environment has this index
  const std::unique_ptr<Environment> environment = MakeEnvironmentFor(config, kIndex);
  RandomStream policy(static_cast<std::uint64_t>(config.seed), "bench replay");
  std::vector<std::byte> observation(environment->spec().observation_bytes());
  bool in_episode = false;
  while (static_cast<std::int64_t>(store.buffer().size()) < transitions) {
    if (stop) throw Error(ErrorKind::kInterrupted, "interrupted");
    if (!in_episode) {
      environment->Reset(observation);
      store.Start(0, observation);
    }
    const int action = static_cast<int>(policy.UniformInt(environment->spec().actions));
    const TimeStep step = environment->Step(action, observation);
    store.Add(0,
              {.action = action,
               .outcome = {.reward = step.reward,
                           .discount = step.discount,
                           .terminated = step.terminated,
                           .truncated = step.truncated}},
              observation);
    in_episode = !step.last();
  }
}

// Saves a run with a filled replay memory. The measured run continues from it.
void PrepareFilledRun(RunConfig config, std::int64_t transitions, const RunFolder& folder,
                      ThreadPool& pool, TrainTimes& times, const StopFlag& stop) {
  config.frames = 1;
  TrainerParts parts = MakeTrainerParts(config, pool);
  const auto start = std::chrono::steady_clock::now();
  FillReplay(config, transitions, *parts.store, stop);
  times.fill_seconds = SecondsSince(start);
  Trainer trainer(config, folder.trainer_files(), std::move(parts), WarningsOnly());
  if (!trainer.Run(stop)) throw Error(ErrorKind::kInterrupted, "interrupted");
  times.first_save_seconds = trainer.final_save_seconds();
}

// Trains one run. All runs begin together when everything is prepared. They end together when the
// first one has all its frames, which sets `over`. `baseline` may be null.
TrainTimes TrainOnce(const RunConfig& config, int threads, std::int64_t replay_transitions,
                     StartBarrier& prepared, AlternatingBaseline* baseline, StopFlag& over,
                     const StopFlag& stop) {
  const TemporaryFolder temporary;
  const RunFolder folder(temporary.path());
  TrainTimes times;
  std::optional<ThreadPool> pool;
  std::optional<Trainer> trainer;
  {
    const ArriveAtEnd arrive{prepared};
    pool.emplace(threads);
    if (replay_transitions > 0) {
      PrepareFilledRun(config, replay_transitions, folder, *pool, times, stop);
    }
    TrainerParts parts = MakeTrainerParts(config, *pool);
    const auto construction = std::chrono::steady_clock::now();
    trainer.emplace(config, folder.trainer_files(), std::move(parts),
                    CallbacksOf(baseline, over, stop));
    times.restore_seconds = SecondsSince(construction);
  }
  if (!prepared.Await(stop)) return times;
  const std::int64_t frames_before = trainer->frames();
  const std::int64_t updates_before = trainer->updates();
  if (baseline != nullptr) baseline->Begin(frames_before);
  const auto start = std::chrono::steady_clock::now();
  const bool complete = trainer->Run(over);
  if (!complete && stop) throw Error(ErrorKind::kInterrupted, "interrupted");
  times.final_save_seconds = trainer->final_save_seconds();
  times.seconds = SecondsSince(start) - times.final_save_seconds;
  if (baseline != nullptr) times.seconds -= baseline->waited_seconds();
  times.frames = trainer->frames() - frames_before;
  times.updates = trainer->updates() - updates_before;
  times.spent = trainer->times();
  times.spent.saving -= times.final_save_seconds;
  times.saves = trainer->save_times();
  return times;
}

// Trains several runs at the same time. Frames and updates are sums over the runs.
TrainTimes TrainSideBySide(const RunConfig& config, const BenchTrainOptions& options, int threads,
                           AlternatingBaseline* baseline, const StopFlag& stop) {
  std::vector<TrainTimes> times(options.runs);
  StartBarrier prepared(options.runs);
  StopFlag over = false;
  ParallelFor(options.runs, times.size(), stop, [&](std::size_t i) {
    RunConfig own = config;
    own.seed += static_cast<std::int64_t>(i);
    times[i] = TrainOnce(own, threads, options.replay_transitions, prepared, baseline, over, stop);
  });
  TrainTimes all = times[0];
  for (std::size_t i = 1; i < times.size(); ++i) {
    all.frames += times[i].frames;
    all.updates += times[i].updates;
    all.seconds = std::max(all.seconds, times[i].seconds);
  }
  return all;
}

// The speed of the bare emulator on one core, and the speed of training as a share of it.
nlohmann::ordered_json DescribeEmulator(const std::vector<double>& speeds,
                                        const std::vector<double>& shares) {
  const Timing speed = Summary(speeds);
  const Timing share = Summary(shares);
  nlohmann::ordered_json json = {{"raw_frames_per_second", speed.median},
                                 {"raw_frames_per_second_spread", SpreadJson(speed)},
                                 {"share_of_raw", share.median}};
  if (shares.size() > 1) {
    json["share_of_raw_spread"] = SpreadJson(share);
    json["turns"] = shares.size();
  }
  return json;
}

struct TrainResult {
  TrainTimes times;
  nlohmann::ordered_json emulator = nlohmann::ordered_json::object();  // empty without an emulator
};

// Trains one environment in turns with its bare emulator. With several environments or runs, the
// emulator only runs before and after training, to measure the speed of a core.
TrainResult TrainBesideEmulator(const RunConfig& config, const BenchTrainOptions& options,
                                int threads, const StopFlag& stop) {
  const auto speed = [&](double seconds) {
    return BareEmulatorSpeed(config.environment, seconds, stop);
  };
  const bool alone =
      config.environments == 1 && options.runs == 1 && options.replay_transitions == 0;
  const double before = speed(alone ? kTurnSeconds : kBareSeconds);
  if (before == 0) {
    return {.times = TrainSideBySide(config, options, threads, nullptr, stop)};
  }
  if (alone) {
    AlternatingBaseline baseline([&] { return speed(kTurnSeconds); });
    const TrainTimes times = TrainSideBySide(config, options, threads, &baseline, stop);
    if (!baseline.shares().empty()) {
      return {.times = times,
              .emulator = DescribeEmulator(baseline.emulator_speeds(), baseline.shares())};
    }
    const double emulator = baseline.emulator_speeds()[0];
    return {.times = times,
            .emulator = DescribeEmulator({emulator}, {times.FramesPerSecond() / emulator})};
  }
  const TrainTimes times = TrainSideBySide(config, options, threads, nullptr, stop);
  const double after = speed(kBareSeconds);
  return {.times = times,
          .emulator =
              DescribeEmulator({before, after}, {2 * times.FramesPerSecond() / (before + after)})};
}

// benchmarks/train_peers.py can train plain DQN with MinAtar's network.
bool HasPeers(const RunConfig& config) {
  return config.environment.name.starts_with("minatar/") && config.environments == 1 &&
         config.network.members == 1 && config.network.torso == TorsoPreset::kMinAtar &&
         config.agent.head == HeadKind::kScalar && !config.agent.double_q &&
         config.agent.priority == PriorityRule::kUniform && config.agent.n_steps == 1 &&
         config.environment.options == EnvironmentOptions{};
}

nlohmann::json PeerSettings(const RunConfig& config, int threads) {
  const std::string& name = config.environment.name;
  const AgentConfig& agent = config.agent;
  const std::int64_t target_period = agent.target_period_frames > 0
                                         ? agent.target_period_frames
                                         : agent.target_period_updates * agent.learn_period_frames;
  return {{"game", name.substr(name.find('/') + 1)},
          {"frames", config.frames},
          {"threads", threads},
          {"hidden_units", config.network.hidden_units},
          {"batch", config.replay.batch_size},
          {"capacity", config.replay.capacity_transitions},
          {"learning_starts", config.replay.minimum_transitions},
          {"learn_period", agent.learn_period_frames},
          {"target_period", target_period},
          {"discount", agent.discount},
          {"optimizer", ChoiceName(config.optimizer.rule)},
          {"learning_rate", config.optimizer.learning_rate},
          {"epsilon_from", config.exploration.epsilon_from},
          {"epsilon_to", config.exploration.epsilon_to},
          {"epsilon_end_frames", config.exploration.end_frames}};
}

nlohmann::ordered_json PeersJson(const RunConfig& config, int threads, const TrainTimes& times) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  if (!HasPeers(config)) return list;
  for (const auto& peer : RunPeers("train_peers.py", PeerSettings(config, threads))) {
    const double speed = peer.at("frames_per_second");
    list.push_back({{"name", peer.at("name")},
                    {"frames_per_second", speed},
                    {"ratio", times.FramesPerSecond() / speed}});
  }
  return list;
}

nlohmann::ordered_json Describe(const RunConfig& config, int runs, int threads,
                                const TrainTimes& times) {
  const TimeBreakdown& spent = times.spent;
  const double named =
      spent.acting + spent.environment + spent.sampling + spent.learning + spent.saving;
  return {{"env", config.environment.name},
          {"agent", config.agent.name},
          {"frames", times.frames},
          {"updates", times.updates},
          {"batch", config.replay.batch_size},
          {"threads", threads},
          {"environments", config.environments},
          {"runs", runs},
          {"device", ChoiceName(ResolveDevice(config))},
          {"instruction_set", cpu::SimdTargetName()},
          {"frames_per_second", times.FramesPerSecond()},
          {"updates_per_second", times.UpdatesPerSecond()},
          {"acting_share", spent.acting / times.seconds},
          {"environment_share", spent.environment / times.seconds},
          {"sampling_share", spent.sampling / times.seconds},
          {"learning_share", spent.learning / times.seconds},
          {"saving_share", spent.saving / times.seconds},
          {"other_share", std::max(0.0, 1 - named / times.seconds)},
          {"save_seconds", times.final_save_seconds}};
}

// The cost of saving with a filled replay memory. After a stop signal the last save remains to be
// done.
nlohmann::ordered_json DescribeSaves(std::int64_t transitions, const TrainTimes& times) {
  const checkpoint::SaveTimes& saves = times.saves;
  const double count = static_cast<double>(std::max<std::int64_t>(1, saves.saves));
  return {{"replay_transitions", transitions},
          {"fill_seconds", times.fill_seconds},
          {"first_save_seconds", times.first_save_seconds},
          {"restore_seconds", times.restore_seconds},
          {"saves", saves.saves},
          {"save_pause_mean_seconds", saves.save_pause_seconds / count},
          {"pause_longest_seconds", saves.longest_pause_seconds},
          {"save_mean_seconds", saves.save_seconds / count},
          {"save_longest_seconds", saves.longest_save_seconds},
          {"saved_bytes", saves.bytes_written},
          {"stop_to_saved_seconds", times.final_save_seconds}};
}

void PrintText(const nlohmann::ordered_json& json) {
  const auto number = [&](const char* key) { return json.at(key).get<double>(); };
  fmt::print(
      "{} on {}: {} frames, {} updates of batch {}, {} runs of {} environments, {} threads each, "
      "{}, {}; no evaluation, no checkpoints\n",
      json.at("agent").get<std::string>(), json.at("env").get<std::string>(), number("frames"),
      number("updates"), number("batch"), number("runs"), number("environments"), number("threads"),
      json.at("device").get<std::string>(), json.at("instruction_set").get<std::string>());
  fmt::print("{:.0f} frames per second, {:.0f} updates per second\n", number("frames_per_second"),
             number("updates_per_second"));
  if (json.contains("raw_frames_per_second")) {
    const auto& spread = json.at("raw_frames_per_second_spread");
    fmt::print(
        "the bare emulator on one core: {:.0f} frames per second [{:.0f}, {:.0f}]; {:.1f} % of it",
        number("raw_frames_per_second"), spread.at(0).get<double>(), spread.at(1).get<double>(),
        100 * number("share_of_raw"));
    if (json.contains("turns")) {
      const auto& shares = json.at("share_of_raw_spread");
      fmt::print(" [{:.1f}, {:.1f}] in {} turns", 100 * shares.at(0).get<double>(),
                 100 * shares.at(1).get<double>(), number("turns"));
    }
    fmt::print("\n");
  }
  fmt::print("share of the time:");
  for (const char* part : {"acting", "environment", "sampling", "learning", "saving", "other"}) {
    fmt::print(" {} {:.1f} %", part, 100 * number((std::string(part) + "_share").c_str()));
  }
  fmt::print("\nsaving everything once, not counted: {:.3f} seconds\n", number("save_seconds"));
  if (json.contains("saving")) {
    const auto save = [&](const char* key) { return json.at("saving").at(key).get<double>(); };
    fmt::print(
        "{} transitions in memory: first save {:.2f} s, restored in {:.2f} s; then {} saves of "
        "{:.2f} s, training paused {:.1f} ms per save and never longer than {:.1f} ms; from a stop "
        "signal to everything saved {:.2f} s\n",
        save("replay_transitions"), save("first_save_seconds"), save("restore_seconds"),
        save("saves"), save("save_mean_seconds"), 1000 * save("save_pause_mean_seconds"),
        1000 * save("pause_longest_seconds"), save("stop_to_saved_seconds"));
  }
  for (const auto& peer : json.at("peers")) {
    fmt::print("{}: {:.0f} frames per second; uper is {:.1f} times as fast\n",
               peer.at("name").get<std::string>(), peer.at("frames_per_second").get<double>(),
               peer.at("ratio").get<double>());
  }
}

}  // namespace

int RunBenchTrain(const BenchTrainOptions& options, const StopFlag& stop) {
  const RunConfig config = ConfigOf(options);
  const int threads = ThreadsOf(config);
  if (options.replay_transitions > config.replay.capacity_transitions) {
    throw Error(ErrorKind::kUsage,
                fmt::format("--replay-transitions {} is above replay.capacity_transitions {}",
                            options.replay_transitions, config.replay.capacity_transitions));
  }
  const auto [times, emulator] = TrainBesideEmulator(config, options, threads, stop);
  nlohmann::ordered_json json = Describe(config, options.runs, threads, times);
  json.update(emulator);
  if (options.replay_transitions > 0) {
    json["saving"] = DescribeSaves(options.replay_transitions, times);
  }
  json["peers"] =
      options.runs == 1 ? PeersJson(config, threads, times) : nlohmann::ordered_json::array();
  if (options.json) {
    fmt::print("{}\n", json.dump());
  } else {
    PrintText(json);
  }
  return kExitDone;
}

}  // namespace uper::cli
