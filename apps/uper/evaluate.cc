#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "apps/uper/commands.h"
#include "apps/uper/exit_code.h"
#include "apps/uper/run_setup.h"
#include "uper/core/moments.h"
#include "uper/train/evaluator.h"
#include "uper/train/learner_tensors.h"

namespace uper {
namespace {

constexpr std::int64_t kDefaultEpisodes = 100;
// Environments of `uper evaluate` share no stream with training (0) or its evaluations (from 2^32).
constexpr std::uint64_t kEvaluateIndex = std::uint64_t{1} << 48;

}  // namespace

int EvaluateRun(const EvaluateOptions& options, const StopFlag& stop) {
  SavedRun run = OpenRun(RunFolder(options.run));
  run.config.seed = static_cast<std::int64_t>(options.seed);
  ThreadPool pool(ThreadsOf(run.config));
  const std::unique_ptr<Learner> learner = LearnerOf(run.config, pool);
  RestoreLearner(run.checkpoint, *learner);
  const std::unique_ptr<Environment> environment = EnvironmentOf(run.config, kEvaluateIndex);
  const bool unlimited = options.episodes == 0 && options.frames == 0;
  const EvaluationResult result =
      Evaluate(*learner, *environment,
               {.frames = options.frames,
                .episodes = unlimited ? kDefaultEpisodes : options.episodes,
                .epsilon = run.config.evaluation_epsilon,
                .seed = options.seed,
                .index = kEvaluateIndex},
               stop);
  if (stop) throw Error(ErrorKind::kInterrupted, "interrupted");
  const double episodes = static_cast<double>(result.returns.size());
  const double deviation =
      result.returns.empty() ? 0 : std::sqrt(ComputeMoments<double>(result.returns).variance);
  const double standard_error = episodes > 1 ? deviation / std::sqrt(episodes - 1) : 0;
  if (options.json) {
    const nlohmann::ordered_json json = {
        {"run", options.run.string()},
        {"agent", run.config.agent.name},
        {"env", run.config.environment.name},
        {"trained_frames", run.checkpoint.manifest.info.at("frames")},
        {"episodes", result.returns.size()},
        {"frames", result.frames},
        {"mean_return", result.mean_return()},
        {"standard_error", standard_error},
        {"returns", result.returns}};
    fmt::print("{}\n", json.dump());
  } else {
    fmt::print("{}: mean return {:.3f} +- {:.3f} (standard error) over {} episodes, {} frames\n",
               run.config.environment.name, result.mean_return(), standard_error,
               result.returns.size(), result.frames);
  }
  return kExitDone;
}

}  // namespace uper
