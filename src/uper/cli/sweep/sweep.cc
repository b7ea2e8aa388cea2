#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "uper/base/error.h"
#include "uper/base/files/atomic_file.h"
#include "uper/base/files/read_text.h"
#include "uper/cli/commands.h"
#include "uper/cli/exit_code.h"
#include "uper/cli/sweep/child_process.h"
#include "uper/cli/sweep/sweep_jobs.h"
#include "uper/cli/sweep/sweep_runner.h"
#include "uper/cli/sweep/sweep_slurm.h"
#include "uper/train/run/run_lock.h"
#include "uper/train/run/run_setup.h"
#include "uper/train/sweep/sweep_folder.h"
#include "uper/train/sweep/sweep_plan.h"

namespace uper::cli {
namespace {

constexpr std::size_t kMaxFileBytes = 1 << 20;

std::string ReadSweepText(const std::filesystem::path& path) {
  std::optional<std::string> text = ReadText(path, kMaxFileBytes);
  if (!text) throw Error(ErrorKind::kUsage, "cannot read " + path.string());
  if (text->size() > kMaxFileBytes) {
    throw Error(ErrorKind::kUsage, path.string() + " is too large to be a sweep");
  }
  return *std::move(text);
}

std::filesystem::path FolderOf(const SweepOptions& options) {
  const std::filesystem::path folder = options.folder.empty()
                                           ? std::filesystem::path("sweeps") / options.file.stem()
                                           : options.folder;
  return std::filesystem::absolute(folder).lexically_normal();
}

// Checks each name and set of options, so that environments that cannot be made are found now.
void CheckEnvironments(const SweepPlan& plan, const std::string& source) {
  std::set<std::string> seen;
  for (const SweepRun& run : plan.runs) {
    std::string where = source;
    std::string identity = run.config.environment.name;
    for (const SweepSetting& setting : run.settings) {
      if (setting.key == "environment.name") where = setting.where;
      if (setting.key.starts_with("environment.")) identity += "\n" + setting.key + setting.text;
    }
    if (!seen.insert(identity).second) continue;
    try {
      CheckEnvironmentFor(run.config);
    } catch (const Error& error) {
      throw Error(error.kind(), where + ": " + error.what());
    }
  }
}

std::string NumberCell(const std::optional<double>& number) {
  return number ? fmt::format("{:.4g}", *number) : "-";
}

using Row = std::vector<std::string>;

Row TableRow(const SweepFolder& folder, const SweepPlan& plan, std::size_t number,
             const SweepProgress& progress) {
  const SweepRun& run = plan.runs[number];
  Row row{std::to_string(number + 1)};
  for (const std::string& key : plan.columns) row.push_back(ValueIn(run, key));
  const std::optional<RunSummary> summary = SummaryOf(folder, run);
  row.push_back(progress.status == SweepStatus::kFailed
                    ? fmt::format("failed ({})", progress.exit_code.value_or(-1))
                    : SweepStatusName(progress.status));
  row.push_back(NumberCell(summary ? summary->final_eval_return : std::nullopt));
  row.push_back(NumberCell(summary ? summary->best_eval_return : std::nullopt));
  row.push_back(summary ? std::to_string(summary->frames) : "-");
  row.push_back(summary ? fmt::format("{:.1f}", summary->wall_seconds) : "-");
  return row;
}

void PrintTable(const SweepFolder& folder, const SweepPlan& plan, const SweepState& state) {
  std::vector<Row> rows{{"#"}};
  for (const std::string& key : plan.columns) rows[0].push_back(key);
  for (const char* name : {"status", "final", "best", "frames", "seconds"}) rows[0].push_back(name);
  for (std::size_t i = 0; i < state.size(); ++i) {
    rows.push_back(TableRow(folder, plan, i, state[i]));
  }
  std::vector<std::size_t> widths(rows[0].size());
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  for (const Row& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) line += fmt::format("{:<{}}  ", row[i], widths[i]);
    fmt::print("{}\n", line.substr(0, line.find_last_not_of(' ') + 1));
  }
}

nlohmann::ordered_json OrNull(const std::optional<double>& number) {
  return number ? nlohmann::ordered_json(*number) : nlohmann::ordered_json(nullptr);
}

nlohmann::ordered_json RunJson(const SweepFolder& folder, const SweepRun& run,
                               const SweepProgress& progress) {
  nlohmann::ordered_json json = {{"run", run.name},
                                 {"folder", folder.run(run).path().string()},
                                 {"status", SweepStatusName(progress.status)},
                                 {"exit_code", nullptr}};
  if (progress.exit_code) json["exit_code"] = *progress.exit_code;
  for (const SweepSetting& setting : run.settings) json["settings"][setting.key] = setting.text;
  if (const std::optional<RunSummary> summary = SummaryOf(folder, run)) {
    json["final_eval_return"] = OrNull(summary->final_eval_return);
    json["best_eval_return"] = OrNull(summary->best_eval_return);
    json["frames"] = summary->frames;
    json["wall_seconds"] = summary->wall_seconds;
  }
  return json;
}

long Count(const SweepState& state, SweepStatus status) {
  return std::count_if(state.begin(), state.end(),
                       [&](const SweepProgress& progress) { return progress.status == status; });
}

void PrintResult(const SweepFolder& folder, const SweepPlan& plan, const SweepState& state,
                 bool json) {
  if (!json) {
    PrintTable(folder, plan, state);
    fmt::print(stderr, "{} of {} runs done, {} failed; summary: {}\n",
               Count(state, SweepStatus::kDone), state.size(), Count(state, SweepStatus::kFailed),
               folder.summary().string());
    return;
  }
  nlohmann::ordered_json result = {{"folder", folder.path().string()},
                                   {"done", Count(state, SweepStatus::kDone)},
                                   {"failed", Count(state, SweepStatus::kFailed)},
                                   {"runs", nlohmann::ordered_json::array()}};
  for (std::size_t i = 0; i < state.size(); ++i) {
    result["runs"].push_back(RunJson(folder, plan.runs[i], state[i]));
  }
  fmt::print("{}\n", result.dump());
}

int ExitCodeOf(const SweepState& state) {
  if (Count(state, SweepStatus::kFailed) > 0) return kExitFailure;
  const bool all = Count(state, SweepStatus::kDone) == static_cast<long>(state.size());
  return all ? kExitDone : kExitInterruptedSaved;
}

int TrainRun(const SweepFolder& folder, const SweepRun& run, std::FILE* log, const StopFlag& stop) {
  TrainOptions options{.folder = folder.run(run).path(),
                       .command = TrainCommand(folder, run),
                       .plots = false,
                       .log = log};
  for (const SweepSetting& setting : run.settings) {
    options.assignments.push_back(setting.key + "=" + setting.text);
  }
  return RunTrain(options, stop);
}

int RunHere(const SweepOptions& options, const SweepFolder& folder, const SweepPlan& plan,
            SweepState& state, const StopFlag& stop) {
  const int jobs = SweepJobs(options.jobs, folder, plan, state);
  fmt::print(stderr, "{} runs in {}, {} at a time, {} done already\n", plan.runs.size(),
             folder.path().string(), jobs, Count(state, SweepStatus::kDone));
  if (CpusOfWorkers(UsableCpus(), jobs, plan.MostThreads()).front().empty()) {
    fmt::print(stderr, "more threads than cores: the runs are not pinned to cores\n");
  }
  const bool through = SweepRunner(folder, plan, state, jobs, TrainRun).Run(stop);
  WriteSweepSummary(folder, plan, state);
  PrintResult(folder, plan, state, options.json);
  if (through) return ExitCodeOf(state);
  fmt::print(stderr, "uper: interrupted and saved; run the same command to go on\n");
  return kExitInterruptedSaved;
}

int Submit(const SweepOptions& options, const SweepFolder& folder, const SweepPlan& plan,
           const SweepState& state) {
  std::vector<std::size_t> open;
  for (std::size_t i = 0; i < state.size(); ++i) {
    if (state[i].status != SweepStatus::kDone) open.push_back(i);
  }
  if (open.empty()) {
    fmt::print(stderr, "every run of {} is done\n", folder.path().string());
    PrintResult(folder, plan, state, options.json);
    return kExitDone;
  }
  const std::string job = SubmitToSlurm(folder, plan, open);
  fmt::print(stderr,
             "submitted {} runs as job {}; `uper sweep {} --out {} --summary` says how far\n",
             open.size(), job, options.file.string(), folder.path().string());
  if (options.json) {
    fmt::print("{}\n",
               nlohmann::ordered_json(
                   {{"folder", folder.path().string()}, {"job", job}, {"submitted", open.size()}})
                   .dump());
  } else {
    fmt::print("{}\n", job);
  }
  return kExitDone;
}

int PrintSummary(const SweepOptions& options, const SweepFolder& folder, const SweepPlan& plan) {
  if (!std::filesystem::exists(folder.file())) {
    throw Error(ErrorKind::kMissingData, "there is no sweep in " + folder.path().string());
  }
  const SweepState state = LoadSweepState(folder, plan);
  WriteSweepSummary(folder, plan, state);
  PrintResult(folder, plan, state, options.json);
  return kExitDone;
}

// Replaces this process by `uper train` for one run.
[[noreturn]] void BecomeRun(const SweepOptions& options, const SweepFolder& folder,
                            const SweepPlan& plan) {
  const std::size_t number = static_cast<std::size_t>(options.only);
  if (number > plan.runs.size()) {
    throw Error(ErrorKind::kUsage, fmt::format("--only {}: {} has {} runs", number,
                                               options.file.string(), plan.runs.size()));
  }
  std::vector<std::string> command = TrainCommand(folder, plan.runs[number - 1]);
  if (options.json) command.push_back("--json");
  BecomeThisProgram(command);
}

}  // namespace

int RunSweep(const SweepOptions& options, const StopFlag& stop) {
  const std::string source = options.file.string();
  const std::string text = ReadSweepText(options.file);
  const SweepPlan plan = ParseSweepPlan(text, source);
  CheckEnvironments(plan, source);
  const SweepFolder folder(FolderOf(options));
  if (options.only > 0) BecomeRun(options, folder, plan);
  if (options.summary) return PrintSummary(options, folder, plan);
  CreateWritableFolder(folder.path());
  const RunLock lock(folder.lock());
  SweepState state = LoadSweepState(folder, plan);
  CreateWritableFolder(folder.logs());
  WriteFileAtomically(folder.file(), text);
  SaveSweepState(folder, plan, state);
  return options.slurm ? Submit(options, folder, plan, state)
                       : RunHere(options, folder, plan, state, stop);
}

}  // namespace uper::cli
