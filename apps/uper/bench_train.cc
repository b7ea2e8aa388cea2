#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "apps/uper/bench_peers.h"
#include "apps/uper/bench_timing.h"
#include "apps/uper/commands.h"
#include "apps/uper/exit_code.h"
#include "apps/uper/run_setup.h"
#include "apps/uper/temporary_folder.h"
#include "uper/nn/cpu/simd_info.h"
#include "uper/train/config_choices.h"
#include "uper/train/resolve_config.h"

namespace uper {
namespace {

constexpr std::int64_t kMostWarmUpTransitions = 100;

// The agent's own configuration but for: the length, learning from frame 100 on (--set may change
// that), one log row and one checkpoint at the end, no evaluation.
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
  config.checkpoint_every_frames = config.frames;
  config.log_every_frames = config.frames;
  config.evaluate_every_frames = 0;
  FillAutomaticKeys(config, 1);
  return config;
}

struct TrainTimes {
  std::int64_t frames = 0;
  std::int64_t updates = 0;
  double seconds = 0;  // from the first frame until the run is saved
  TimeShares spent;

  double FramesPerSecond() const { return static_cast<double>(frames) / seconds; }
  double UpdatesPerSecond() const { return static_cast<double>(updates) / seconds; }
};

TrainTimes TrainOnce(const RunConfig& config, int threads, const StopFlag& stop) {
  const TemporaryFolder folder;
  ThreadPool pool(threads);
  Trainer trainer(config, RunFolder(folder.path()), PartsOf(config, pool),
                  {.progress = {}, .warn = [](const std::string& message) {
                     fmt::print(stderr, "uper: {}\n", message);
                   }});
  const auto start = std::chrono::steady_clock::now();
  if (!trainer.Run(stop)) throw Error(ErrorKind::kInterrupted, "interrupted");
  return {.frames = trainer.frames(),
          .updates = trainer.updates(),
          .seconds = SecondsSince(start),
          .spent = trainer.time_shares()};
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
          {"save_seconds", spent.saving}};
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
  const TrainTimes times = TrainOnce(config, threads, stop);
  nlohmann::ordered_json json = Describe(config, threads, times);
  json["peers"] = PeersJson(config, threads, times);
  if (options.json) {
    fmt::print("{}\n", json.dump());
  } else {
    PrintText(json);
  }
  return kExitDone;
}

}  // namespace uper
