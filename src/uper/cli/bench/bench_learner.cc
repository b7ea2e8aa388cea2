#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "uper/base/threads/thread_pool.h"
#include "uper/cli/bench/bench_peers.h"
#include "uper/cli/bench/bench_timing.h"
#include "uper/cli/bench/bench_update_phases.h"
#include "uper/cli/bench/random_batch.h"
#include "uper/cli/bench/synthetic_gpu_run.h"
#include "uper/cli/commands.h"
#include "uper/cli/exit_code.h"
#include "uper/cli/warn_cpu_fallback.h"
#include "uper/nn/cpu/kernels/simd_info.h"
#include "uper/nn/gpu.h"
#include "uper/train/config/config_choices.h"
#include "uper/train/run/make_learner.h"
#include "uper/train/run/run_setup.h"

namespace uper::cli {
namespace {

constexpr double kSecondsPerMeasurement = 0.2;
constexpr int kActsPerRepeat = 3;  // each after its own update
constexpr int kManyActs = 16;      // decisions at once, one per environment
constexpr int kUpdatesInARow = 4;  // due in a round of kManyActs environments (64 frames)

// Times with the replay memory on the GPU, as in training.
struct ResidentTimes {
  Timing update;         // updates queued one by one
  Timing update_in_row;  // one of kUpdatesInARow updates that are queued at once
  Timing act;
  Timing act_many;  // kManyActs decisions at once
};

struct LearnerTimes {
  Timing update;                   // seconds
  Timing act;                      // one decision after another
  Timing act_after_update;         // the parameters have just changed, as in training
  std::optional<Timing> act_many;  // kManyActs decisions at once
  std::optional<ResidentTimes> resident;
};

Timing MeasureActAfterUpdate(const MeasureOptions& options, Learner& learner,
                             const RandomBatch& batch, std::span<float> q) {
  std::vector<double> values;
  for (int i = 0; i < kActsPerRepeat * options.repeats; ++i) {
    learner.Update(batch.View());
    const auto start = std::chrono::steady_clock::now();
    learner.ActionValues(batch.Observations(1), 1, q);
    values.push_back(SecondsSince(start));
  }
  return Summary(std::move(values));
}

// The time from complete frames to action values. As in training, the games play for a while
// between two decisions.
Timing MeasureResidentAct(const MeasureOptions& options, SyntheticGpuRun& loop, int count,
                          const StopFlag& stop) {
  constexpr int kActs = 1000;  // per repeat
  constexpr double kPlaySeconds = 200e-6;
  std::vector<double> values;
  for (int repeat = 0; repeat < options.repeats; ++repeat) {
    double seconds = 0;
    for (int i = 0; i < kActs; ++i) {
      if (stop) throw Error(ErrorKind::kInterrupted, "interrupted");
      const auto play = std::chrono::steady_clock::now();
      loop.Play(count);
      while (SecondsSince(play) < kPlaySeconds) {
      }
      const auto start = std::chrono::steady_clock::now();
      loop.Act(count);
      seconds += SecondsSince(start);
    }
    values.push_back(seconds / kActs);
  }
  return Summary(std::move(values));
}

ResidentTimes MeasureResident(const MeasureOptions& options, SyntheticGpuRun& loop,
                              const StopFlag& stop) {
  const auto update = [&](int count) {
    return Scaled(MeasureSeconds(options, stop, [&](std::uint64_t) { loop.Update(count); }),
                  1.0 / count);
  };
  const auto act = [&](int count) { return MeasureResidentAct(options, loop, count, stop); };
  return {.update = update(1),
          .update_in_row = update(kUpdatesInARow),
          .act = act(1),
          .act_many = act(kManyActs)};
}

LearnerTimes MeasureLearner(const BenchLearnerOptions& options, const RunConfig& config,
                            const LearnerSpec& spec, ThreadPool& pool, const StopFlag& stop) {
  const std::unique_ptr<Learner> learner = MakeLearnerOn(ResolveDevice(config), spec, pool);
  InitializeLearner(config, *learner);
  const RandomBatch batch(config, spec, ObservationsOf(options));
  std::vector<float> q(std::size_t{kManyActs} * spec.network.actions);
  const MeasureOptions measure{.repeats = options.repeats, .least_seconds = kSecondsPerMeasurement};
  const auto act = [&](int count) {
    return MeasureSeconds(measure, stop, [&](std::uint64_t) {
      learner->ActionValues(batch.Observations(count), count,
                            std::span(q).first(std::size_t{1} * count * spec.network.actions));
    });
  };
  for (int i = 0; i < 3; ++i) learner->Update(batch.View());  // warms up
  LearnerTimes times{.update = MeasureSeconds(
                         measure, stop, [&](std::uint64_t) { learner->Update(batch.View()); }),
                     .act = act(1),
                     .act_after_update = MeasureActAfterUpdate(
                         measure, *learner, batch, std::span(q).first(spec.network.actions))};
  if (spec.batch >= kManyActs) times.act_many = act(kManyActs);
  const EnvironmentSpec observations = ObservationsOf(options);
  if (ResolveDevice(config) == DeviceChoice::kCuda &&
      SyntheticGpuRun::Suits(config, observations) && spec.batch >= kManyActs) {
    SyntheticGpuRun loop(config, observations, *learner, batch.Observations(1));
    times.resident = MeasureResident(measure, loop, stop);
  }
  return times;
}

// Describes the same update for benchmarks/learner_peers.py.
nlohmann::json PeerSettings(const BenchLearnerOptions& options, const RunConfig& config,
                            const LearnerSpec& spec, int threads) {
  return {{"network", options.network},
          {"channels", spec.network.input.channels},
          {"hidden_units", spec.network.hidden_units},
          {"actions", spec.network.actions},
          {"members", spec.network.members},
          {"outputs", spec.network.outputs},
          {"head", ChoiceName(spec.loss.head)},
          {"double_q", spec.loss.double_q},
          {"huber_kappa", spec.loss.huber_kappa},
          {"mask_probability", config.agent.mask_probability},
          {"discount", config.agent.discount},
          {"optimizer", ChoiceName(config.optimizer.rule)},
          {"learning_rate", config.optimizer.learning_rate},
          {"epsilon", config.optimizer.epsilon},
          {"max_global_norm", spec.max_global_norm},
          {"batch", spec.batch},
          {"threads", threads},
          {"repeats", options.repeats}};
}

nlohmann::ordered_json PeersJson(const nlohmann::json& peers, const Timing& update) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const auto& peer : peers) {
    const Timing timing = TimingFrom(peer.at("update_ms"));
    list.push_back({{"name", peer.at("name")},
                    {"update_ms", timing.median},
                    {"update_ms_spread", SpreadJson(timing)},
                    {"ratio", timing.median / (1e3 * update.median)},
                    {"ratio_of_lowest", timing.low / (1e3 * update.low)}});
  }
  return list;
}

void PrintTable(const BenchLearnerOptions& options, const LearnerTimes& times,
                const std::string& device, const nlohmann::ordered_json& peers) {
  const auto text = [](const Timing& timing, double factor) {
    return fmt::format("{:.3f} [{:.3f}, {:.3f}]", timing.median * factor, timing.low * factor,
                       timing.high * factor);
  };
  fmt::print("{} on {}, {} actions, batch {}, {}; median [lowest, highest]\n", options.agent,
             options.network, options.actions, options.batch, device);
  fmt::print("{:44} {:>28}\n", "one update, ms", text(times.update, 1e3));
  if (times.resident) {
    fmt::print("{:44} {:>28}\n", "one update, from the GPU's memory, ms",
               text(times.resident->update, 1e3));
    fmt::print("{:44} {:>28}\n", fmt::format("one of {} in a row, ms", kUpdatesInARow),
               text(times.resident->update_in_row, 1e3));
  }
  fmt::print("{:44} {:>28}\n", "one decision, us", text(times.act, 1e6));
  fmt::print("{:44} {:>28}\n", "first decision after an update, us",
             text(times.act_after_update, 1e6));
  if (times.act_many) {
    fmt::print("{:44} {:>28}\n", fmt::format("{} decisions at once, us", kManyActs),
               text(*times.act_many, 1e6));
  }
  if (times.resident) {
    fmt::print("{:44} {:>28}\n", "one decision, frames in GPU memory, us",
               text(times.resident->act, 1e6));
    fmt::print("{:44} {:>28}\n", fmt::format("{} decisions, frames in GPU memory, us", kManyActs),
               text(times.resident->act_many, 1e6));
  }
  for (const auto& peer : peers) {
    fmt::print("{:44} {:>28}  {:.1f} times ours (lowest: {:.1f})\n",
               fmt::format("{}, ms", peer.at("name").get<std::string>()),
               fmt::format("{:.3f} [{:.3f}, {:.3f}]", peer.at("update_ms").get<double>(),
                           peer.at("update_ms_spread")[0].get<double>(),
                           peer.at("update_ms_spread")[1].get<double>()),
               peer.at("ratio").get<double>(), peer.at("ratio_of_lowest").get<double>());
  }
}

// The device as the table names it.
std::string DeviceText(const LearnerSpec& spec, int threads, bool gpu) {
  if (gpu) return fmt::format("{}, {}", QueryGpu().name, ChoiceName(spec.precision));
  return fmt::format("{} thread{}, {}", threads, threads == 1 ? "" : "s", cpu::SimdTargetName());
}

nlohmann::ordered_json Describe(const BenchLearnerOptions& options, const LearnerSpec& spec,
                                int threads, bool gpu, const LearnerTimes& times,
                                const nlohmann::ordered_json& peers) {
  nlohmann::ordered_json json = {{"agent", options.agent},
                                 {"network", options.network},
                                 {"actions", options.actions},
                                 {"members", spec.network.members},
                                 {"outputs", spec.network.outputs},
                                 {"batch", spec.batch},
                                 {"threads", threads},
                                 {"device", gpu ? "cuda" : "cpu"},
                                 {"precision", ChoiceName(spec.precision)},
                                 {"instruction_set", cpu::SimdTargetName()},
                                 {"update_ms", 1e3 * times.update.median},
                                 {"update_ms_spread", SpreadJson(Scaled(times.update, 1e3))},
                                 {"act_us", 1e6 * times.act.median},
                                 {"act_us_spread", SpreadJson(Scaled(times.act, 1e6))},
                                 {"act_after_update_us", 1e6 * times.act_after_update.median},
                                 {"peers", peers}};
  if (times.act_many) json["act_16_us"] = 1e6 * times.act_many->median;
  if (gpu) json["gpu"] = QueryGpu().name;
  if (times.resident) {
    json["update_resident_ms"] = 1e3 * times.resident->update.median;
    json["update_resident_ms_spread"] = SpreadJson(Scaled(times.resident->update, 1e3));
    json["update_in_row_ms"] = 1e3 * times.resident->update_in_row.median;
    json["update_in_row_ms_spread"] = SpreadJson(Scaled(times.resident->update_in_row, 1e3));
    json["act_resident_us"] = 1e6 * times.resident->act.median;
    json["act_16_resident_us"] = 1e6 * times.resident->act_many.median;
  }
  return json;
}

}  // namespace

int RunBenchLearner(const BenchLearnerOptions& options, const StopFlag& stop) {
  if (!options.instructions.empty()) cpu::UseSimdTarget(options.instructions);
  if (options.parts) return BenchUpdatePhases(options, stop);
  const RunConfig config = ConfigOf(options);
  const LearnerSpec spec = LearnerSpecFrom(config, ObservationsOf(options));
  const int threads = options.threads > 0 ? options.threads : AvailableCores();
  const bool gpu = ResolveDevice(config) == DeviceChoice::kCuda;
  if (gpu && !options.instructions.empty()) {
    throw Error(ErrorKind::kUsage, "--instructions is about the CPU: use --device cpu with it");
  }
  WarnCpuFallback(config);
  LearnerTimes times;
  {
    ThreadPool pool(threads);  // ends before the peers run, so that they have all cores
    times = MeasureLearner(options, config, spec, pool, stop);
  }
  // Peers on a GPU have their own scripts in benchmarks/gpu/.
  const nlohmann::ordered_json peers =
      gpu || !options.peers
          ? nlohmann::ordered_json::array()
          : PeersJson(RunPeers("learner_peers.py", PeerSettings(options, config, spec, threads)),
                      times.update);
  if (options.json) {
    fmt::print("{}\n", Describe(options, spec, threads, gpu, times, peers).dump());
  } else {
    PrintTable(options, times, DeviceText(spec, threads, gpu), peers);
  }
  return kExitDone;
}

}  // namespace uper::cli
