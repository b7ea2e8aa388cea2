#include "uper/cli/sweep/sweep_jobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "uper/base/error.h"
#include "uper/base/threads/parallel.h"
#include "uper/train/config/resolve_config.h"
#include "uper/train/run/run_setup.h"

namespace uper::cli {
namespace {

constexpr double kGibibyte = 1 << 30;

// Runs of one kind need about the same memory. The seed and the game of a suite do not matter.
std::string KindOf(const SweepRun& run) {
  const std::string& environment = run.config.environment.name;
  std::string kind = environment.substr(0, environment.find('/'));
  for (const SweepSetting& setting : run.settings) {
    if (setting.key == "seed" || setting.key == "environment.name") continue;
    kind += "\n" + setting.key + "=" + setting.text;
  }
  return kind;
}

// A run that cannot be planned counts as 0. It fails on its own when it starts.
std::uint64_t MemoryOf(const SweepRun& run) try {
  RunConfig config = run.config;
  FillAutomaticKeys(config, FramesPerStepOf(config));
  return PlanRun(config).memory();
} catch (const Error&) {
  return 0;
}

// The bytes that each unfinished run needs, largest first.
std::vector<std::uint64_t> MemoryOfOpenRuns(const SweepPlan& plan, const SweepState& state) {
  std::map<std::string, std::uint64_t> known;
  std::vector<std::uint64_t> needs;
  for (std::size_t i = 0; i < plan.runs.size(); ++i) {
    if (state[i].status == SweepStatus::kDone) continue;
    const auto [kind, is_new] = known.try_emplace(KindOf(plan.runs[i]));
    if (is_new) kind->second = MemoryOf(plan.runs[i]);
    needs.push_back(kind->second);
  }
  std::ranges::sort(needs, std::greater());
  return needs;
}

// How many of the largest runs fit together. At least 1: a single run checks its memory itself.
int CountThatFit(const std::vector<std::uint64_t>& needs, std::uint64_t available) {
  std::uint64_t sum = 0;
  int count = 0;
  for (const std::uint64_t need : needs) {
    sum += need;
    if (sum > available) break;
    ++count;
  }
  return std::max(count, 1);
}

}  // namespace

int SweepJobs(int asked, const SweepFolder& folder, const SweepPlan& plan,
              const SweepState& state) {
  const int threads = plan.MostThreads();
  const int by_cores = threads == 0 ? 1 : std::max(1, AvailableCores() / threads);
  const int jobs = asked > 0 ? asked : by_cores;
  const std::vector<std::uint64_t> needs = MemoryOfOpenRuns(plan, state);
  if (jobs == 1 || needs.size() < 2) return jobs;
  const AvailableResources available = ResourcesFor(RunFolder(folder.path()));
  const int fit = CountThatFit(needs, available.memory);
  const int together = std::min(jobs, static_cast<int>(needs.size()));
  if (available.memory == 0 || fit >= together) return jobs;
  double sum = 0;
  for (int i = 0; i < together; ++i) sum += static_cast<double>(needs[i]);
  const std::string numbers = fmt::format(
      "{} runs at a time need up to {:.2f} GiB of memory, {:.2f} GiB are available {}", together,
      sum / kGibibyte, static_cast<double>(available.memory) / kGibibyte, available.memory_source);
  if (asked > 0) throw Error(ErrorKind::kResources, numbers + fmt::format(": --jobs {} fits", fit));
  fmt::print(stderr, "{}: {} at a time\n", numbers, fit);
  return fit;
}

}  // namespace uper::cli
