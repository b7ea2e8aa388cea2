#include "uper/cli/sweep/sweep_runner.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <thread>
#include <utility>

#include "uper/cli/exit_code.h"
#include "uper/cli/sweep/child_process.h"
#include "uper/nn/gpu.h"
#include "uper/train/run/run_lock.h"

namespace uper::cli {
namespace {

constexpr std::chrono::milliseconds kPoll{20};
constexpr std::chrono::seconds kTerminalPeriod{1};
constexpr std::chrono::seconds kLinePeriod{30};
constexpr std::streamoff kTailBytes = 4096;

// The last bytes of a file, as lines.
std::vector<std::string> LastLines(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  file.seekg(0, std::ios::end);
  const std::streamoff size = file.tellg();
  file.seekg(std::max<std::streamoff>(0, size - kTailBytes));
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

// The frames of the last row of metrics.csv, or 0 without a row.
std::int64_t LoggedFrames(const RunFolder& run) {
  const std::vector<std::string> lines = LastLines(run.metrics());
  std::int64_t frames = 0;
  if (!lines.empty()) {
    const std::string& last = lines.back();
    std::from_chars(last.data(), last.data() + last.size(), frames);
  }
  return frames;
}

// The last error message in the log of a run.
std::string LastComplaint(const std::filesystem::path& log) {
  const std::vector<std::string> lines = LastLines(log);
  const auto found = std::find_if(lines.rbegin(), lines.rend(), [](const std::string& line) {
    return line.starts_with("uper: ");
  });
  return found == lines.rend() ? "" : ": " + found->substr(6);
}

// Cuts a line to the width of the terminal. A longer line could not be overwritten.
std::string FittingTerminal(const std::string& text) {
  winsize size{};
  const bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
  return known ? text.substr(0, size.ws_col - 1) : text;
}

std::string CpuText(const std::vector<int>& cpus) {
  if (cpus.empty()) return "";
  std::string text;
  for (const int cpu : cpus) text += (text.empty() ? " on cpu " : ",") + std::to_string(cpu);
  return text;
}

std::string ResultText(const SweepFolder& folder, const SweepRun& run) {
  const std::optional<RunSummary> summary = SummaryOf(folder, run);
  if (!summary || !summary->final_eval_return) return "";
  return fmt::format(", final evaluation {:.4g}", *summary->final_eval_return);
}

}  // namespace

std::vector<std::vector<int>> CpusOfWorkers(const std::vector<int>& usable, int jobs, int threads) {
  std::vector<std::vector<int>> cpus(static_cast<std::size_t>(jobs));
  const std::size_t each = threads == 0 ? usable.size() : static_cast<std::size_t>(threads);
  if (each * cpus.size() > usable.size()) return cpus;
  for (std::size_t i = 0; i < cpus.size(); ++i) {
    const auto first = usable.begin() + static_cast<std::ptrdiff_t>(i * each);
    cpus[i].assign(first, first + static_cast<std::ptrdiff_t>(each));
  }
  return cpus;
}

SweepRunner::SweepRunner(const SweepFolder& folder, const SweepPlan& plan, SweepState& state,
                         int jobs, TrainHere train)
    : folder_(folder),
      plan_(plan),
      state_(state),
      train_(std::move(train)),
      terminal_(isatty(STDERR_FILENO) != 0) {
  for (std::size_t i = 0; i < plan.runs.size(); ++i) {
    if (state[i].status != SweepStatus::kDone) waiting_.push_back(i);
  }
  for (std::vector<int>& cpus : CpusOfWorkers(UsableCpus(), jobs, plan.MostThreads())) {
    workers_.push_back({.cpus = std::move(cpus), .job = nullptr});
  }
}

bool SweepRunner::Run(const StopFlag& stop) {
  while (!stop && !gpu_lost_ && (!waiting_.empty() || Running() > 0)) {
    StartWhatFits();
    CollectEnded();
    ShowStatus(false);
    std::this_thread::sleep_for(kPoll);
  }
  if (Running() > 0) {
    Line("told the runs under way to save and stop");
    StopJobs();
  }
  while (Running() > 0) {
    CollectEnded();
    std::this_thread::sleep_for(kPoll);
  }
  ClearStatus();
  if (gpu_lost_) {
    throw Error(ErrorKind::kResources,
                "the GPU stopped working; what was saved before is intact, run the same command to "
                "go on from there");
  }
  return !stop;
}

void SweepRunner::StartWhatFits() {
  for (Worker& worker : workers_) {
    if (worker.job == nullptr && !StartNext(worker)) return;
  }
}

// Starts the first waiting run whose folder is free. After a kill, the earlier process may still
// hold the folder because it is saving.
bool SweepRunner::StartNext(Worker& worker) {
  const auto next = std::find_if(waiting_.begin(), waiting_.end(),
                                 [&](std::size_t i) { return !IsHeld(plan_.runs[i]); });
  if (next == waiting_.end()) return false;
  worker.run = *next;
  waiting_.erase(next);
  const SweepRun& run = plan_.runs[worker.run];
  SweepProgress& progress = state_[worker.run];
  progress.status = SweepStatus::kRunning;
  ++progress.sessions;
  SaveSweepState(folder_, plan_, state_);
  worker.start = Clock::now();
  worker.job = StartSweepJob(folder_, run, worker.cpus, train_);
  Line(fmt::format("start {}{}", run.name, CpuText(worker.cpus)));
  return true;
}

bool SweepRunner::IsHeld(const SweepRun& run) {
  const std::filesystem::path lock = folder_.run(run).lock();
  if (!std::filesystem::exists(lock)) return false;
  try {
    const RunLock probe(lock);
    return false;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kResources) return false;  // the run itself will report it
    if (!told_held_) Line(std::string("waiting: ") + error.what());
    told_held_ = true;
    return true;
  }
}

void SweepRunner::CollectEnded() {
  for (Worker& worker : workers_) {
    if (worker.job == nullptr) continue;
    if (const std::optional<int> exit_code = worker.job->ExitCodeIfEnded()) {
      Ended(worker, *exit_code);
    }
  }
}

void SweepRunner::Ended(Worker& worker, int exit_code) {
  const SweepRun& run = plan_.runs[worker.run];
  SweepProgress& progress = state_[worker.run];
  progress.exit_code = exit_code;
  progress.status = exit_code == kExitDone               ? SweepStatus::kDone
                    : exit_code == kExitInterruptedSaved ? SweepStatus::kInterrupted
                                                         : SweepStatus::kFailed;
  worker.job = nullptr;
  if (exit_code == kExitResources && run.config.device != DeviceChoice::kCpu) {
    const GpuInfo gpu = QueryGpu();
    gpu_lost_ = gpu_lost_ || (gpu.built && !gpu.name.empty() && !gpu.usable);
  }
  SaveSweepState(folder_, plan_, state_);
  const std::chrono::duration<double> seconds = Clock::now() - worker.start;
  if (progress.status == SweepStatus::kDone) {
    Line(fmt::format("done {} in {:.1f} s{}", run.name, seconds.count(), ResultText(folder_, run)));
  } else if (progress.status == SweepStatus::kInterrupted) {
    Line(fmt::format("saved {} after {:.1f} s", run.name, seconds.count()));
  } else {
    constexpr int kKilled = 128 + SIGKILL;  // such a run leaves no message
    Line(fmt::format("FAILED {} with exit code {}{} (all of it: {})", run.name, exit_code,
                     exit_code == kKilled ? ": killed (out of memory? use fewer --jobs)"
                                          : LastComplaint(folder_.log(run)),
                     folder_.log(run).string()));
  }
  ShowStatus(true);
}

void SweepRunner::StopJobs() const {
  for (const Worker& worker : workers_) {
    if (worker.job != nullptr) worker.job->Stop();
  }
}

std::size_t SweepRunner::Running() const {
  return static_cast<std::size_t>(
      std::count_if(workers_.begin(), workers_.end(),
                    [](const Worker& worker) { return worker.job != nullptr; }));
}

void SweepRunner::Line(const std::string& text) const {
  ClearStatus();
  fmt::print(stderr, "{}\n", text);
}

void SweepRunner::ClearStatus() const {
  if (terminal_) fmt::print(stderr, "\r\033[K");
}

void SweepRunner::ShowStatus(bool now) {
  const auto time = Clock::now();
  const auto period = terminal_ ? kTerminalPeriod : kLinePeriod;
  if (!now && time - last_status_ < period) return;
  last_status_ = time;
  const auto count = [&](SweepStatus status) {
    return std::count_if(state_.begin(), state_.end(),
                         [&](const SweepProgress& progress) { return progress.status == status; });
  };
  std::string text = fmt::format("{} of {} done, {} failed", count(SweepStatus::kDone),
                                 state_.size(), count(SweepStatus::kFailed));
  for (const Worker& worker : workers_) {
    if (worker.job == nullptr) continue;
    const SweepRun& run = plan_.runs[worker.run];
    text += fmt::format("; {} {:.0f} %", run.name,
                        100.0 * static_cast<double>(LoggedFrames(folder_.run(run))) /
                            static_cast<double>(run.config.frames));
  }
  if (terminal_) {
    fmt::print(stderr, "\r{}\033[K", FittingTerminal(text));
  } else {
    fmt::print(stderr, "{}\n", text);
  }
  std::fflush(stderr);
}

}  // namespace uper::cli
