#include "uper/cli/report/run_reader.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "uper/base/error.h"
#include "uper/base/files/read_text.h"
#include "uper/envs/registry.h"
#include "uper/stats/csv_reader.h"
#include "uper/train/config/config_io.h"
#include "uper/train/config/resolve_config.h"
#include "uper/train/run/run_folder.h"
#include "uper/train/run/run_setup.h"

namespace uper::cli {
namespace {

namespace fs = std::filesystem;

struct LoadedRun {
  RunCurve curve;
  RunConfig config;  // with ResolvedOptions(), so that equal rules have equal keys
};

// Keys that change the meaning of a score.
bool IsProtocolKey(std::string_view key) {
  constexpr std::array<std::string_view, 3> kEvaluation = {
      "evaluate_every_frames", "evaluation_frames", "evaluation_episodes"};
  if (std::find(kEvaluation.begin(), kEvaluation.end(), key) != kEvaluation.end()) return true;
  return key.starts_with("environment.") && key != "environment.name" &&
         key != "environment.rom_dir";
}

// Keys in which runs of one experiment may differ. The end of the importance schedule follows from
// the length of the run.
bool MayDifferWithinAgent(std::string_view key) {
  constexpr std::array<std::string_view, 8> kFree = {"seed",
                                                     "frames",
                                                     "threads",
                                                     "device",
                                                     "checkpoint_every_frames",
                                                     "log_every_frames",
                                                     "environment.name",
                                                     "replay.importance_exponent_end_transitions"};
  return std::find(kFree.begin(), kFree.end(), key) != kFree.end() || key == "environment.rom_dir";
}

std::string Joined(const std::vector<std::string>& keys) {
  std::string text;
  for (const std::string& key : keys) text += (text.empty() ? "" : ", ") + key;
  return text;
}

[[noreturn]] void ThrowNotComparable(const LoadedRun& a, const LoadedRun& b,
                                     const std::vector<std::string>& keys,
                                     const std::string& advice) {
  throw Error(ErrorKind::kUsage, a.curve.folder + " and " + b.curve.folder + " differ in " +
                                     Joined(keys) + ": " + advice);
}

template <typename Predicate>
std::vector<std::string> DifferingKeysIf(const LoadedRun& a, const LoadedRun& b, Predicate counts) {
  std::vector<std::string> keys = DifferingKeys(a.config, b.config);
  std::erase_if(keys, [&](const std::string& key) { return !counts(key); });
  return keys;
}

void CheckSameProtocol(const std::vector<LoadedRun>& runs, bool partial) {
  const LoadedRun& first = runs.front();
  std::map<std::string, const LoadedRun*> of_agent;
  for (const LoadedRun& run : runs) {
    if (SuiteOf(run.curve.env) != SuiteOf(first.curve.env)) {
      ThrowNotComparable(first, run,
                         {"environment.name (" + first.curve.env + ", " + run.curve.env + ")"},
                         "runs of different suites are not aggregated");
    }
    const auto protocol = DifferingKeysIf(first, run, IsProtocolKey);
    if (!protocol.empty()) {
      ThrowNotComparable(first, run, protocol, "runs of different protocols are not comparable");
    }
    if (!partial && run.config.frames != first.config.frames) {
      ThrowNotComparable(first, run, {"frames"},
                         "--partial compares them as far as the shorter one goes");
    }
    const LoadedRun& same_agent = *of_agent.emplace(run.curve.agent, &run).first->second;
    const auto settings = DifferingKeysIf(
        same_agent, run, [](std::string_view key) { return !MayDifferWithinAgent(key); });
    if (!settings.empty()) {
      ThrowNotComparable(
          same_agent, run, settings,
          "runs of agent " + run.curve.agent + " must have the same settings to be averaged");
    }
  }
}

std::string ReadMetricsText(const fs::path& file) {
  std::optional<std::string> text = ReadText(file);
  if (!text) {
    throw Error(ErrorKind::kMissingData, file.string() + " cannot be read; is " +
                                             file.parent_path().string() +
                                             " the folder of a run that was started?");
  }
  return *std::move(text);
}

[[noreturn]] void ThrowNoEvaluation(const fs::path& file, std::int64_t frames) {
  throw Error(ErrorKind::kCorrupt, file.string() + " has no evaluation at frame " +
                                       std::to_string(frames) +
                                       ", where the run made one: the file is damaged");
}

// A run evaluates before the first frame, after each round (one step of every environment) that
// passes a multiple of `every`, and at the end.
struct EvaluationTimes {
  std::int64_t every = 0;         // 0: never
  std::int64_t round_frames = 1;  // most frames of a round

  std::int64_t MarkOf(std::int64_t frames) const {
    return every > 0 ? frames / every * every : frames;
  }
};

EvaluationTimes EvaluationTimesOf(const RunConfig& config) {
  return {.every = config.evaluate_every_frames,
          .round_frames = std::int64_t{config.environments} * FramesPerStepOf(config)};
}

// Throws if an evaluation is missing between those of the curve and the next one, at frame `at`.
// One round can pass several multiples and makes one evaluation for all of them. In that case the
// round began before the first multiple.
void CheckNoneMissing(const fs::path& file, const EvaluationTimes& times, const RunCurve& curve,
                      std::int64_t at) {
  if (times.every == 0) return;
  const std::int64_t expected =
      curve.evaluations.empty() ? 0 : curve.evaluations.back().frames + times.every;
  const bool one_round = at < expected + times.round_frames;
  if (times.MarkOf(at) > expected && !one_round) ThrowNoEvaluation(file, expected);
}

// Adds the evaluations in the rows of metrics.csv to the curve. Returns the frames of the last
// evaluation, or -1.
std::int64_t ReadMetrics(const fs::path& file, const EvaluationTimes& times, RunCurve& curve) {
  const CsvTable table(ReadMetricsText(file), file.string(), /*last_line_may_be_cut=*/true);
  std::int64_t last_evaluation = -1;
  if (table.rows() == 0) return last_evaluation;
  const std::size_t frames = table.Column("frames");
  const std::size_t returns = table.Column("eval_return");
  const std::optional<std::size_t> episodes = table.Find("eval_episodes");
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const auto at = static_cast<std::int64_t>(table.Number(row, frames).value_or(0));
    if (row > 0 && at <= curve.frames) {
      throw Error(ErrorKind::kCorrupt, file.string() + ":" + std::to_string(row + 2) + ": frame " +
                                           std::to_string(at) + " after frame " +
                                           std::to_string(curve.frames) +
                                           ", but frames ascend; `uper train` on the folder "
                                           "repairs the log of an unfinished run");
    }
    curve.frames = at;
    const std::optional<double> value = table.Number(row, returns);
    if (!value) continue;
    const bool cut = episodes && table.Number(row, *episodes) == 0.0;
    const std::int64_t mark = times.MarkOf(at);
    CheckNoneMissing(file, times, curve, at);
    if (curve.evaluations.empty() || curve.evaluations.back().frames != mark) {
      curve.evaluations.push_back({.frames = mark});
    }
    curve.evaluations.back().mean_return = *value;
    curve.evaluations.back().cut = cut;
    last_evaluation = at;
  }
  return last_evaluation;
}

// `finished_frames`: the frames in the run's marker `finished`.
void CheckComplete(const RunCurve& curve, std::int64_t finished_frames, bool partial) {
  const std::string reached =
      std::to_string(curve.frames) + " of " + std::to_string(curve.total_frames) + " frames";
  if (!curve.finished && !partial) {
    throw Error(ErrorKind::kMissingData, curve.folder + " is not finished (" + reached +
                                             "); `uper train " + curve.folder +
                                             "/config.toml --out " + curve.folder +
                                             "` goes on, --partial (reproduce: --set partial=true)"
                                             " takes what is there");
  }
  if (curve.finished && curve.frames < finished_frames && !partial) {
    throw Error(ErrorKind::kCorrupt,
                curve.folder + "/metrics.csv ends at frame " + std::to_string(curve.frames) +
                    ", the run at " + std::to_string(finished_frames) +
                    ": rows are lost; --partial (reproduce: --set partial=true) takes the rest");
  }
  if (curve.evaluations.empty()) {
    throw Error(ErrorKind::kMissingData, curve.folder + " has no evaluation in metrics.csv (" +
                                             reached + "); see evaluate_every_frames");
  }
}

LoadedRun ReadRun(const fs::path& path, bool partial) {
  const RunFolder folder(path);
  const RunState state = folder.State();
  if (state == RunState::kNew || !fs::exists(folder.config())) {
    throw Error(ErrorKind::kMissingData, path.string() +
                                             " is not a run folder: it has no config.toml, and no "
                                             "folder in it has one");
  }
  LoadedRun run;
  run.config = ReadDumpedConfig(folder.config());
  EnvironmentConfig& environment = run.config.environment;
  environment.options = ResolvedOptions(environment.name, environment.options);
  run.curve = {.folder = path.string(),
               .agent = run.config.agent.name,
               .env = run.config.environment.name,
               .seed = run.config.seed,
               .total_frames = run.config.frames,
               .finished = state == RunState::kFinished};
  const EvaluationTimes times = EvaluationTimesOf(run.config);
  const std::int64_t last_evaluation = ReadMetrics(folder.metrics(), times, run.curve);
  const std::int64_t finished_frames = folder.FinishedFrames().value_or(0);
  CheckComplete(run.curve, finished_frames, partial);
  // A run also evaluates at its end.
  if (times.every > 0 && last_evaluation < finished_frames && !partial) {
    ThrowNoEvaluation(folder.metrics(), finished_frames);
  }
  return run;
}

bool HoldsRun(const fs::path& folder) { return fs::exists(folder / "config.toml"); }

// The folder itself if it is a run, else the runs in it.
std::vector<fs::path> RunsIn(const fs::path& folder) {
  if (!fs::is_directory(folder)) {
    throw Error(ErrorKind::kMissingData, "there is no folder " + folder.string());
  }
  std::vector<fs::path> runs;
  if (!HoldsRun(folder)) {
    for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
      if (entry.is_directory() && HoldsRun(entry.path())) runs.push_back(entry.path());
    }
    std::sort(runs.begin(), runs.end());
  }
  if (runs.empty()) runs.push_back(folder);
  return runs;
}

}  // namespace

std::vector<RunCurve> ReadRuns(const std::vector<fs::path>& folders, bool partial) {
  std::set<fs::path> seen;
  std::vector<LoadedRun> runs;
  for (const fs::path& folder : folders) {
    for (const fs::path& path : RunsIn(folder)) {
      if (seen.insert(fs::canonical(path)).second) runs.push_back(ReadRun(path, partial));
    }
  }
  if (runs.empty()) {
    throw Error(ErrorKind::kMissingData, "no training runs were given: name their folders");
  }
  CheckSameProtocol(runs, partial);
  std::vector<RunCurve> curves;
  for (LoadedRun& run : runs) curves.push_back(std::move(run.curve));
  return curves;
}

}  // namespace uper::cli
