#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>

#include "uper/base/check.h"
#include "uper/base/files/npz_writer.h"
#include "uper/base/random.h"
#include "uper/base/threads/parallel.h"
#include "uper/cli/action_file.h"
#include "uper/cli/commands.h"
#include "uper/cli/environment_flags.h"
#include "uper/cli/exit_code.h"
#include "uper/core/moments.h"
#include "uper/envs/observation_stack.h"
#include "uper/envs/registry.h"
#include "uper/train/run/memory_info.h"

namespace uper::cli {
namespace {

constexpr std::int64_t kDefaultEpisodes = 100;
constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMaxDumpBytes = (std::int64_t{1} << 32) - (1 << 20);  // of a plain .npz
constexpr double kMebibyte = 1 << 20;

// Describes what one environment plays. Seed, index and options determine all of it, so it can be
// played twice.
struct Script {
  std::string env;
  EnvironmentOptions options;
  std::uint64_t seed = 1;
  std::uint64_t index = 0;   // of the environment
  std::vector<int> actions;  // empty: uniformly random ones
  std::int64_t max_episodes = kUnlimited;
  std::int64_t max_steps = kUnlimited;

  std::unique_ptr<Environment> MakeGame() const {
    return MakeEnvironment(env, options, seed, index);
  }
};

// Records every step in memory that was reserved in advance.
class StepRecorder {
 public:
  static std::int64_t BytesPerStep(const EnvironmentSpec& spec) {
    return static_cast<std::int64_t>(spec.observation_bytes() * spec.frame_stack +
                                     sizeof(std::int32_t) + 2 * sizeof(double) + 2);
  }

  StepRecorder(const EnvironmentSpec& spec, std::int64_t steps)
      : spec_(spec), stack_(spec, StackLayout::kChannelsLast) {
    observations_.reserve(steps * spec.observation_bytes() * spec.frame_stack);
    actions_.reserve(steps);
    rewards_.reserve(steps);
    discounts_.reserve(steps);
    terminated_.reserve(steps);
    truncated_.reserve(steps);
  }

  // `first`: of an episode.
  void AddObservation(std::span<const std::byte> observation, bool first) {
    std::copy(observation.begin(), observation.end(), stack_.next().begin());
    if (first) {
      stack_.Start();
    } else {
      stack_.Push();
    }
    observations_.insert(observations_.end(), stack_.bytes().begin(), stack_.bytes().end());
  }
  void AddStep(int action, const TimeStep& step) {
    actions_.push_back(action);
    rewards_.push_back(step.reward);
    discounts_.push_back(step.discount);
    terminated_.push_back(step.terminated ? 1 : 0);
    truncated_.push_back(step.truncated ? 1 : 0);
  }

  void Write(NpzWriter& file) const {
    const std::size_t steps = actions_.size();
    const NpyShape shape{steps, static_cast<std::size_t>(spec_.height),
                         static_cast<std::size_t>(spec_.width),
                         static_cast<std::size_t>(spec_.channels * spec_.frame_stack)};
    if (spec_.element == EnvironmentSpec::Element::kUint8) {
      file.Add("observation", ObservationsAs<std::uint8_t>(), shape);
    } else {
      file.Add("observation", ObservationsAs<float>(), shape);
    }
    file.Add("action", actions_, {steps});
    file.Add("reward", rewards_, {steps});
    file.Add("discount", discounts_, {steps});
    file.Add("terminated", terminated_, {steps});
    file.Add("truncated", truncated_, {steps});
    file.Commit();
  }

 private:
  template <typename Element>
  std::span<const Element> ObservationsAs() const {
    return {reinterpret_cast<const Element*>(observations_.data()),
            observations_.size() / sizeof(Element)};
  }

  const EnvironmentSpec spec_;
  ObservationStack stack_;
  std::vector<std::byte> observations_;  // [step, height, width, channel], before each action
  std::vector<std::int32_t> actions_;
  std::vector<double> rewards_, discounts_;
  std::vector<std::uint8_t> terminated_, truncated_;
};

struct Outcome {
  std::vector<double> returns;        // of the episodes that ended
  std::vector<std::int64_t> lengths;  // steps
  std::int64_t steps = 0;             // all of them
  std::int64_t frames = 0;
};

// `recorder` may be null.
Outcome Play(const Script& script, StepRecorder* recorder, const StopFlag& stop) {
  const std::unique_ptr<Environment> environment = script.MakeGame();
  const int actions = environment->spec().actions;
  std::vector<std::byte> observation(environment->spec().observation_bytes());
  RandomStream policy(script.seed, "rollout policy", script.index);
  Outcome outcome;
  while (outcome.steps < script.max_steps && std::ssize(outcome.returns) < script.max_episodes) {
    environment->Reset(observation);
    double episode_return = 0;
    const std::int64_t first_step = outcome.steps;
    for (bool last = false; !last && outcome.steps < script.max_steps;) {
      if (stop) throw Error(ErrorKind::kInterrupted, "interrupted");
      const int action = script.actions.empty() ? static_cast<int>(policy.UniformInt(actions))
                                                : script.actions[outcome.steps];
      if (recorder != nullptr) {
        recorder->AddObservation(observation, /*first=*/outcome.steps == first_step);
      }
      const TimeStep step = environment->Step(action, observation);
      if (recorder != nullptr) recorder->AddStep(action, step);
      ++outcome.steps;
      outcome.frames += step.frames;
      episode_return += step.reward;
      last = step.last();
      if (last) {
        outcome.returns.push_back(episode_return);
        outcome.lengths.push_back(outcome.steps - first_step);
      }
    }
  }
  return outcome;
}

Script ScriptFrom(const RolloutOptions& options) {
  if (options.policy.empty() == options.actions.empty()) {
    throw Error(ErrorKind::kUsage, "give either --policy random or --actions FILE");
  }
  if (options.environments > 1 && !(options.actions.empty() && options.dump.empty())) {
    throw Error(ErrorKind::kUsage, "--actions and --dump are for one environment");
  }
  Script script{.env = options.env,
                .options = EnvironmentOptionsFrom(options.assignments),
                .seed = options.seed};
  const int actions = script.MakeGame()->spec().actions;
  if (options.episodes > 0) script.max_episodes = options.episodes;
  if (options.steps > 0) script.max_steps = options.steps;
  if (!options.actions.empty()) {
    script.actions = ReadActionFile(options.actions, actions);
    script.max_steps = std::min(script.max_steps, std::ssize(script.actions));
  } else if (options.episodes == 0 && options.steps == 0) {
    script.max_episodes = kDefaultEpisodes;
  }
  return script;
}

// The share of `total` for environment `index` of `count`. The first environments get the larger
// shares.
std::int64_t ShareOf(std::int64_t total, int count, int index) {
  if (total == kUnlimited) return kUnlimited;
  return total / count + (index < total % count ? 1 : 0);
}

// Joins the outcomes of several environments, whose episodes then alternate.
Outcome InTurns(std::span<const Outcome> parts) {
  Outcome all;
  std::size_t longest = 0;
  for (const Outcome& part : parts) {
    all.steps += part.steps;
    all.frames += part.frames;
    longest = std::max(longest, part.returns.size());
  }
  for (std::size_t episode = 0; episode < longest; ++episode) {
    for (const Outcome& part : parts) {
      if (episode >= part.returns.size()) continue;
      all.returns.push_back(part.returns[episode]);
      all.lengths.push_back(part.lengths[episode]);
    }
  }
  return all;
}

// Each environment plays its share on its own, so that none waits for another.
Outcome PlayBesideEachOther(const Script& script, const RolloutOptions& options,
                            const StopFlag& stop) {
  std::vector<Outcome> parts(options.environments);
  const int threads =
      std::min(options.threads > 0 ? options.threads : AvailableCores(), options.environments);
  ParallelFor(threads, parts.size(), stop, [&](std::size_t i) {
    Script mine = script;
    mine.index = i;
    mine.max_episodes = ShareOf(script.max_episodes, options.environments, static_cast<int>(i));
    mine.max_steps = ShareOf(script.max_steps, options.environments, static_cast<int>(i));
    if (mine.max_episodes > 0 && mine.max_steps > 0) parts[i] = Play(mine, nullptr, stop);
  });
  return InTurns(parts);
}

// Throws if a dump would not fit into memory or into an .npz file.
void CheckDumpSize(const EnvironmentSpec& spec, std::int64_t steps) {
  const double bytes =
      static_cast<double>(steps) * static_cast<double>(StepRecorder::BytesPerStep(spec));
  const std::string size =
      fmt::format("a dump of {} steps of {} takes {:.0f} MiB", steps, spec.name, bytes / kMebibyte);
  const double available = static_cast<double>(ReadMemoryInfo().available_bytes);
  if (bytes > available / 2) {
    throw Error(ErrorKind::kResources,
                fmt::format("{}, more than half of the {:.0f} MiB of memory that are free: play "
                            "fewer steps",
                            size, available / kMebibyte));
  }
  if (bytes > static_cast<double>(kMaxDumpBytes)) {
    throw Error(ErrorKind::kUsage, size + ", an .npz file holds 4096: play fewer steps");
  }
}

// Plays once to count the steps, and then again with all memory reserved.
Outcome PlayAndDump(const Script& script, const std::filesystem::path& path, const StopFlag& stop) {
  const EnvironmentSpec spec = script.MakeGame()->spec();
  if (script.max_steps < kUnlimited && script.max_episodes == kUnlimited) {
    CheckDumpSize(spec, script.max_steps);
  }
  NpzWriter file(path);  // throws for a bad path before playing
  const std::int64_t steps = Play(script, nullptr, stop).steps;
  CheckDumpSize(spec, steps);
  StepRecorder recorder(spec, steps);
  Outcome outcome = Play(script, &recorder, stop);
  recorder.Write(file);
  return outcome;
}

nlohmann::ordered_json Describe(const RolloutOptions& options, const Outcome& outcome) {
  nlohmann::ordered_json json = {{"env", options.env},
                                 {"policy", options.policy.empty() ? "file" : options.policy},
                                 {"seed", options.seed},
                                 {"environments", options.environments},
                                 {"episodes", outcome.returns.size()},
                                 {"steps", outcome.steps},
                                 {"frames", outcome.frames},
                                 {"mean_return", nullptr},
                                 {"standard_error", nullptr},
                                 {"mean_length", nullptr},
                                 {"shortest_length", nullptr},
                                 {"longest_length", nullptr},
                                 {"unfinished_steps", outcome.steps}};
  if (!outcome.returns.empty()) {
    const double episodes = static_cast<double>(outcome.returns.size());
    const Moments moments = ComputeMoments<double>(outcome.returns);
    std::int64_t finished_steps = 0;
    for (const std::int64_t length : outcome.lengths) finished_steps += length;
    const auto [shortest, longest] =
        std::minmax_element(outcome.lengths.begin(), outcome.lengths.end());
    json["mean_return"] = moments.mean;
    if (episodes > 1) json["standard_error"] = std::sqrt(moments.variance / (episodes - 1));
    json["mean_length"] = static_cast<double>(finished_steps) / episodes;
    json["shortest_length"] = *shortest;
    json["longest_length"] = *longest;
    json["unfinished_steps"] = outcome.steps - finished_steps;
  }
  json["returns"] = outcome.returns;
  json["lengths"] = outcome.lengths;
  return json;
}

void PrintText(const nlohmann::ordered_json& json) {
  const std::int64_t episodes = json.at("episodes");
  const std::int64_t unfinished = json.at("unfinished_steps");
  if (episodes > 0) {
    fmt::print(
        "{}: mean return {:.3f}{} over {} episode{}; {:.1f} steps per episode, from {} to {}\n",
        json.at("env").get<std::string>(), json.at("mean_return").get<double>(),
        episodes > 1
            ? fmt::format(" +- {:.3f} (standard error)", json.at("standard_error").get<double>())
            : "",
        episodes, episodes == 1 ? "" : "s", json.at("mean_length").get<double>(),
        json.at("shortest_length").get<std::int64_t>(),
        json.at("longest_length").get<std::int64_t>());
  }
  if (unfinished > 0) {
    fmt::print("{} of {} steps belong to {} that did not end\n", unfinished,
               json.at("steps").get<std::int64_t>(),
               json.at("environments") == 1 ? "an episode" : "episodes");
  }
}

}  // namespace

int RunRollout(const RolloutOptions& options, const StopFlag& stop) {
  const Script script = ScriptFrom(options);
  const Outcome outcome = options.dump.empty() ? PlayBesideEachOther(script, options, stop)
                                               : PlayAndDump(script, options.dump, stop);
  const nlohmann::ordered_json json = Describe(options, outcome);
  if (options.json) {
    fmt::print("{}\n", json.dump());
  } else {
    PrintText(json);
    if (!options.dump.empty()) {
      fmt::print("{} steps in {}\n", outcome.steps, options.dump.string());
    }
  }
  return kExitDone;
}

}  // namespace uper::cli
