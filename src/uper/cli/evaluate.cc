#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "uper/cli/commands.h"
#include "uper/cli/exit_code.h"
#include "uper/cli/video/recording.h"
#include "uper/core/moments.h"
#include "uper/engine/learner_tensors.h"
#include "uper/nn/gpu.h"
#include "uper/stats/bootstrap.h"
#include "uper/train/loop/evaluator.h"
#include "uper/train/run/run_setup.h"

namespace uper::cli {
namespace {

constexpr std::int64_t kDefaultEpisodes = 100;
// Default length of a film: one episode, and at most half an hour of Atari.
constexpr std::int64_t kVideoEpisodes = 1;
constexpr std::int64_t kVideoFrames = 108'000;
// Environments of `uper evaluate` share no random stream with training (indices from 0) or with its
// evaluations (indices from 2^32).
constexpr std::uint64_t kEvaluateIndex = std::uint64_t{1} << 48;
constexpr std::uint64_t kRandomIndex = kEvaluateIndex + 1;

// The return of a policy over its finished episodes.
struct PolicyReturn {
  EvaluationResult result;
  std::optional<double> standard_error;  // from two episodes on
  std::optional<Interval> interval;      // of the mean
};

PolicyReturn Summarize(EvaluationResult result) {
  PolicyReturn summary{.result = std::move(result)};
  const std::vector<double>& returns = summary.result.returns;
  if (returns.size() > 1) {
    summary.standard_error = std::sqrt(ComputeMoments<double>(returns).variance /
                                       (static_cast<double>(returns.size()) - 1));
    summary.interval = BootstrapMean(returns);
  }
  return summary;
}

// Fills in the limits that the user did not give.
EvaluateOptions WithLimits(EvaluateOptions options) {
  const bool film = !options.video.empty();
  if (options.episodes == 0 && options.frames == 0) {
    options.episodes = film ? kVideoEpisodes : kDefaultEpisodes;
  }
  if (film && options.frames == 0) options.frames = kVideoFrames;
  const std::filesystem::path asked = std::exchange(options.video, VideoFileFor(options.video));
  if (options.video != asked) {
    fmt::print(stderr,
               "uper: there is no ffmpeg, which makes .mp4 files (apt-get install ffmpeg): the "
               "video becomes {}, an animated PNG\n",
               options.video.string());
  }
  return options;
}

PolicyReturn Play(const EvaluateOptions& options, Environment& environment, Learner& learner,
                  double epsilon, std::uint64_t index, const StopFlag& stop,
                  const EvaluationWatcher& watch = nullptr) {
  EvaluationResult result = Evaluate(learner, environment,
                                     {.frames = options.frames,
                                      .episodes = options.episodes,
                                      .epsilon = epsilon,
                                      .seed = options.seed,
                                      .index = index},
                                     stop, watch);
  if (stop) throw Error(ErrorKind::kInterrupted, "interrupted");
  return Summarize(std::move(result));
}

int StepsPerSecondOf(const RunConfig& config) {
  constexpr int kAtariFramesPerSecond = 60;
  constexpr int kOtherStepsPerSecond = 10;
  const int frames = FramesPerStepOf(config);
  return frames > 1 ? kAtariFramesPerSecond / frames : kOtherStepsPerSecond;
}

PolicyReturn PlayAgent(const EvaluateOptions& options, const SavedRun& run, Learner& learner,
                       std::int64_t trained_frames, const StopFlag& stop) {
  const std::unique_ptr<Environment> environment = MakeEnvironmentFor(run.config, kEvaluateIndex);
  const double epsilon = run.config.evaluation_epsilon;
  if (options.video.empty()) {
    return Play(options, *environment, learner, epsilon, kEvaluateIndex, stop);
  }
  Recording recording(
      {.file = options.video,
       .title = run.config.environment.name,
       .subtitle = fmt::format("{} after {} frames", run.config.agent.name, trained_frames),
       .steps_per_second = StepsPerSecondOf(run.config),
       .aleatoric_floor = run.config.agent.aleatoric_floor},
      learner, *environment);
  const PolicyReturn agent = Play(options, *environment, learner, epsilon, kEvaluateIndex, stop,
                                  [&](const EvaluationMoment& moment) { recording.Show(moment); });
  recording.Finish();
  const auto episodes = static_cast<std::int64_t>(agent.result.returns.size());
  if (options.episodes > 0 && episodes < options.episodes) {
    fmt::print(stderr,
               "uper: the video ends after {} frames, before the end of episode {}; --frames N "
               "sets the length\n",
               agent.result.frames, episodes + 1);
  }
  return agent;
}

nlohmann::ordered_json ToJson(const PolicyReturn& policy) {
  const auto known = [](const auto& of, auto member) {
    return of ? nlohmann::json(std::invoke(member, *of)) : nlohmann::json();
  };
  return {{"episodes", policy.result.returns.size()},
          {"frames", policy.result.frames},
          {"mean_return", policy.result.mean_return()},
          {"standard_error", known(policy.standard_error, std::identity())},
          {"ci_low", known(policy.interval, &Interval::low)},
          {"ci_high", known(policy.interval, &Interval::high)},
          {"returns", policy.result.returns}};
}

void PrintLine(const std::string& name, const PolicyReturn& policy) {
  const std::size_t episodes = policy.result.returns.size();
  fmt::print("{:<44} {:>9.3f}   {}   {} episode{}, {} frames\n", name, policy.result.mean_return(),
             policy.interval
                 ? fmt::format("[{:.3f}, {:.3f}]", policy.interval->low, policy.interval->high)
                 : "-",
             episodes, episodes == 1 ? "" : "s", policy.result.frames);
}

std::string Verdict(const PolicyReturn& agent, const PolicyReturn& random) {
  if (!agent.interval || !random.interval) {
    return "Nothing is said about a difference: each must finish at least two episodes.";
  }
  if (agent.interval->low > random.interval->high) {
    return "The agent is better than random: the intervals do not meet.";
  }
  if (agent.interval->high < random.interval->low) {
    return "The agent is worse than random: the intervals do not meet.";
  }
  return "No difference to a random policy is shown: the intervals meet.";
}

// Only the CPU learner shows the members' outputs, and it computes in fp32. An agent that learned
// in another precision on a GPU can thus still be evaluated and filmed on a machine without one.
void UseCpuIfNeeded(const EvaluateOptions& options, RunConfig& config) {
  const bool falls_back = config.device == DeviceChoice::kAuto && !QueryGpu().usable;
  if (options.video.empty() && !falls_back) return;
  config.device = DeviceChoice::kCpu;
  config.precision = Precision::kFp32;
}

}  // namespace

int RunEvaluate(const EvaluateOptions& given, const StopFlag& stop) {
  const EvaluateOptions options = WithLimits(given);
  SavedRun run = OpenRun(RunFolder(options.run));
  run.config.seed = static_cast<std::int64_t>(options.seed);
  UseCpuIfNeeded(options, run.config);
  ThreadPool pool(ThreadsOf(run.config));
  const std::unique_ptr<Learner> learner = MakeLearnerFor(run.config, pool);
  RestoreLearner(run.checkpoint, *learner);
  const std::int64_t trained_frames = run.checkpoint.manifest.info.at("frames");
  const PolicyReturn agent = PlayAgent(options, run, *learner, trained_frames, stop);
  std::optional<PolicyReturn> random;
  if (!options.against.empty()) {
    random = Play(options, *MakeEnvironmentFor(run.config, kRandomIndex), *learner, /*epsilon=*/1,
                  kRandomIndex, stop);
  }

  if (options.json) {
    nlohmann::ordered_json json = {{"run", options.run.string()},
                                   {"agent", run.config.agent.name},
                                   {"env", run.config.environment.name},
                                   {"trained_frames", trained_frames}};
    json.update(ToJson(agent));
    if (!options.video.empty()) json["video"] = options.video.string();
    if (random) json["random"] = ToJson(*random);
    fmt::print("{}\n", json.dump());
    return kExitDone;
  }
  fmt::print("{:<44} {:>9}   95 % interval\n", run.config.environment.name, "return");
  PrintLine(fmt::format("{} after {} frames", run.config.agent.name, trained_frames), agent);
  if (random) {
    PrintLine("random policy", *random);
    fmt::print("{}\n", Verdict(agent, *random));
  }
  return kExitDone;
}

}  // namespace uper::cli
