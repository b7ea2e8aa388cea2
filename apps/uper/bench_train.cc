#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "apps/uper/bench_peers.h"
#include "apps/uper/bench_timing.h"
#include "apps/uper/commands.h"
#include "apps/uper/exit_code.h"
#include "apps/uper/run_setup.h"
#include "apps/uper/temporary_folder.h"
#include "uper/base/random.h"
#include "uper/nn/cpu/simd_info.h"
#include "uper/train/config_choices.h"
#include "uper/train/resolve_config.h"

namespace uper {
namespace {

constexpr std::int64_t kMostWarmUpTransitions = 100;

constexpr std::int64_t kSaves = 5;  // with a filled replay memory

// The agent's own configuration but for: the length, learning from frame 100 on (--set may change
// that), one log row and one checkpoint at the end (with a filled memory kSaves of them), no
// evaluation.
RunConfig ConfigOf(const BenchTrainOptions& options) {
  const std::int64_t warm_up =
      std::clamp<std::int64_t>(options.frames / 10, 1, kMostWarmUpTransitions);
  RunConfig config = ResolveConfig(
      {.flags = {{"--agent", "agent.name", options.agent},
                 {"--env", "environment.name", options.env},
                 {"--frames", "frames", std::to_string(options.frames)},
                 {"bench train", "replay.minimum_transitions", std::to_string(warm_up)},
                 {"--threads", "threads", std::to_string(options.threads)}},
       .settings = options.assignments});
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
  double seconds = 0;  // from the first frame until the run is saved
  TimeShares spent;
  SaveTimes saves;
  double final_save_seconds = 0;
  // With a filled memory only.
  double fill_seconds = 0;
  double first_save_seconds = 0;  // of the whole memory at once
  double restore_seconds = 0;

  double FramesPerSecond() const { return static_cast<double>(frames) / seconds; }
  double UpdatesPerSecond() const { return static_cast<double>(updates) / seconds; }
};

TrainerCallbacks WarningsOnly() {
  return {.progress = {},
          .warn = [](const std::string& message) { fmt::print(stderr, "uper: {}\n", message); }};
}

// Plays random actions into a memory that nobody learns from yet.
void FillReplay(const RunConfig& config, std::int64_t transitions, Experience& experience,
                const StopFlag& stop) {
  constexpr std::uint64_t kIndex = std::uint64_t{1} << 47;  // of no other environment
  const std::unique_ptr<Environment> environment = EnvironmentOf(config, kIndex);
  RandomStream policy(static_cast<std::uint64_t>(config.seed), "bench replay");
  std::vector<std::byte> observation(environment->spec().observation_bytes());
  bool in_episode = false;
  while (static_cast<std::int64_t>(experience.buffer().size()) < transitions) {
    if (stop) throw Error(ErrorKind::kInterrupted, "interrupted");
    if (!in_episode) {
      environment->Reset(observation);
      experience.Start(0, observation);
    }
    const int action = static_cast<int>(policy.UniformInt(environment->spec().actions));
    const TimeStep step = environment->Step(action, observation);
    experience.Step(0,
                    {.action = action,
                     .outcome = {.reward = step.reward,
                                 .discount = step.discount,
                                 .terminated = step.terminated,
                                 .truncated = step.truncated}},
                    observation);
    in_episode = !step.last();
  }
}

// A run that begins with a filled memory: saved, so that the run to be measured continues it.
void PrepareFilledRun(RunConfig config, std::int64_t transitions, const RunFolder& folder,
                      ThreadPool& pool, TrainTimes& times, const StopFlag& stop) {
  config.frames = 1;
  TrainerParts parts = PartsOf(config, pool);
  const auto start = std::chrono::steady_clock::now();
  FillReplay(config, transitions, *parts.experience, stop);
  times.fill_seconds = SecondsSince(start);
  Trainer trainer(config, folder, std::move(parts), WarningsOnly());
  if (!trainer.Run(stop)) throw Error(ErrorKind::kInterrupted, "interrupted");
  times.first_save_seconds = trainer.final_save_seconds();
}

TrainTimes TrainOnce(const RunConfig& config, int threads, std::int64_t replay_transitions,
                     const StopFlag& stop) {
  const TemporaryFolder temporary;
  const RunFolder folder(temporary.path());
  ThreadPool pool(threads);
  TrainTimes times;
  if (replay_transitions > 0) {
    PrepareFilledRun(config, replay_transitions, folder, pool, times, stop);
  }
  TrainerParts parts = PartsOf(config, pool);
  const auto construction = std::chrono::steady_clock::now();
  Trainer trainer(config, folder, std::move(parts), WarningsOnly());
  times.restore_seconds = SecondsSince(construction);
  const std::int64_t frames_before = trainer.frames();
  const std::int64_t updates_before = trainer.updates();
  const auto start = std::chrono::steady_clock::now();
  if (!trainer.Run(stop)) throw Error(ErrorKind::kInterrupted, "interrupted");
  times.seconds = SecondsSince(start);
  times.frames = trainer.frames() - frames_before;
  times.updates = trainer.updates() - updates_before;
  times.spent = trainer.time_shares();
  times.saves = trainer.save_times();
  times.final_save_seconds = trainer.final_save_seconds();
  return times;
}

// benchmarks/train_peers.py knows plain DQN with MinAtar's network.
bool HasPeers(const RunConfig& config) {
  return config.environment.name.starts_with("minatar/") && config.network.members == 1 &&
         config.network.torso == TorsoPreset::kMinAtar && config.agent.head == HeadKind::kScalar &&
         !config.agent.double_q && config.agent.priority == PriorityRule::kUniform &&
         config.agent.n_steps == 1 && config.environment.options == EnvironmentOptions{};
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

nlohmann::ordered_json Describe(const RunConfig& config, int threads, const TrainTimes& times) {
  const TimeShares& spent = times.spent;
  const double named =
      spent.acting + spent.environment + spent.sampling + spent.learning + spent.saving;
  return {{"env", config.environment.name},
          {"agent", config.agent.name},
          {"frames", times.frames},
          {"updates", times.updates},
          {"batch", config.replay.batch_size},
          {"threads", threads},
          {"instruction_set", SimdTargetName()},
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

// What saving costs with a filled memory. A stop signal costs what the last save does.
nlohmann::ordered_json DescribeSaves(std::int64_t transitions, const TrainTimes& times) {
  const SaveTimes& saves = times.saves;
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
  fmt::print("{} on {}: {} frames, {} updates of batch {}, {} threads, {}\n",
             json.at("agent").get<std::string>(), json.at("env").get<std::string>(),
             number("frames"), number("updates"), number("batch"), number("threads"),
             json.at("instruction_set").get<std::string>());
  fmt::print("{:.0f} frames a second, {:.0f} updates a second\n", number("frames_per_second"),
             number("updates_per_second"));
  fmt::print("share of the time:");
  for (const char* part : {"acting", "environment", "sampling", "learning", "saving", "other"}) {
    fmt::print(" {} {:.1f} %", part, 100 * number((std::string(part) + "_share").c_str()));
  }
  fmt::print("\nsaving everything once: {:.3f} seconds\n", number("save_seconds"));
  if (json.contains("saving")) {
    const auto save = [&](const char* key) { return json.at("saving").at(key).get<double>(); };
    fmt::print(
        "{} transitions in memory: first save {:.2f} s, restored in {:.2f} s; then {} saves of "
        "{:.2f} s, training paused {:.1f} ms a save and never longer than {:.1f} ms; from a stop "
        "signal to everything saved {:.2f} s\n",
        save("replay_transitions"), save("first_save_seconds"), save("restore_seconds"),
        save("saves"), save("save_mean_seconds"), 1000 * save("save_pause_mean_seconds"),
        1000 * save("pause_longest_seconds"), save("stop_to_saved_seconds"));
  }
  for (const auto& peer : json.at("peers")) {
    fmt::print("{}: {:.0f} frames a second; uper is {:.1f} times as fast\n",
               peer.at("name").get<std::string>(), peer.at("frames_per_second").get<double>(),
               peer.at("ratio").get<double>());
  }
}

}  // namespace

int BenchTrain(const BenchTrainOptions& options, const StopFlag& stop) {
  const RunConfig config = ConfigOf(options);
  const int threads = ThreadsOf(config);
  if (options.replay_transitions > config.replay.capacity_transitions) {
    throw Error(ErrorKind::kUsage,
                fmt::format("--replay-transitions {} is above replay.capacity_transitions {}",
                            options.replay_transitions, config.replay.capacity_transitions));
  }
  const TrainTimes times = TrainOnce(config, threads, options.replay_transitions, stop);
  nlohmann::ordered_json json = Describe(config, threads, times);
  if (options.replay_transitions > 0) {
    json["saving"] = DescribeSaves(options.replay_transitions, times);
  }
  json["peers"] = PeersJson(config, threads, times);
  if (options.json) {
    fmt::print("{}\n", json.dump());
  } else {
    PrintText(json);
  }
  return kExitDone;
}

}  // namespace uper
