#include "uper/cli/sweep/sweep_job.h"

#include <pthread.h>
#include <sched.h>
#include <sys/types.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <new>
#include <thread>

#include "uper/cli/exit_code.h"
#include "uper/cli/sweep/child_process.h"
#include "uper/train/run/run_setup.h"

namespace uper::cli {
namespace {

class ProcessJob final : public SweepJob {
 public:
  ProcessJob(const SweepFolder& folder, const SweepRun& run, const std::vector<int>& cpus)
      : child_(StartChild(
            {.command = TrainCommand(folder, run), .log = folder.log(run), .cpus = cpus})) {}

  std::optional<int> ExitCodeIfEnded() override { return ExitStatusIfEnded(child_); }
  void Stop() override { kill(child_, SIGTERM); }

 private:
  const pid_t child_;
};

// Pins the calling thread, and all threads that it will start, to these processors.
void RunOn(const std::vector<int>& cpus) {
  if (cpus.empty()) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : cpus) CPU_SET(static_cast<std::size_t>(cpu), &set);
  pthread_setaffinity_np(pthread_self(), sizeof(set), &set);  // on failure it runs anywhere
}

struct FileCloser {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

class ThreadJob final : public SweepJob {
 public:
  ThreadJob(const SweepFolder& folder, const SweepRun& run, const std::vector<int>& cpus,
            const TrainHere& train)
      : log_(std::fopen(folder.log(run).c_str(), "a")) {
    if (!log_) {
      throw Error(ErrorKind::kResources,
                  "cannot write " + folder.log(run).string() + ": " + std::strerror(errno));
    }
    std::setvbuf(log_.get(), nullptr, _IOLBF, BUFSIZ);
    thread_ = std::jthread([this, folder, run, cpus, train] {
      RunOn(cpus);
      exit_code_ = RunToEnd([&] { return train(folder, run, log_.get(), stop_); });
      ended_.store(true, std::memory_order_release);
    });
  }

  std::optional<int> ExitCodeIfEnded() override {
    return ended_.load(std::memory_order_acquire) ? std::optional(exit_code_) : std::nullopt;
  }
  void Stop() override { stop_ = true; }

 private:
  // Turns exceptions into a line of the log and an exit code, as main() does.
  int RunToEnd(const std::function<int()>& train) {
    try {
      return train();
    } catch (const Error& error) {
      return Report(error.what(), ExitCodeFor(error.kind()));
    } catch (const std::bad_alloc&) {
      return Report("out of memory; use fewer --jobs or smaller sizes", kExitResources);
    } catch (const std::exception& error) {
      return Report(error.what(), kExitFailure);
    }
  }
  int Report(const char* message, int exit_code) {
    std::fprintf(log_.get(), "uper: %s\n", message);
    return exit_code;
  }

  const std::unique_ptr<std::FILE, FileCloser> log_;
  StopFlag stop_ = false;
  std::atomic<bool> ended_ = false;
  int exit_code_ = 0;  // valid once ended_ is true
  std::jthread thread_;
};

}  // namespace

std::vector<std::string> TrainCommand(const SweepFolder& folder, const SweepRun& run) {
  std::vector<std::string> command = {ThisProgram().string(), "train", "--no-plots", "--out",
                                      folder.run(run).path().string()};
  for (const SweepSetting& setting : run.settings) {
    command.insert(command.end(), {"--set", setting.key + "=" + setting.text});
  }
  return command;
}

std::unique_ptr<SweepJob> StartProcessJob(const SweepFolder& folder, const SweepRun& run,
                                          const std::vector<int>& cpus) {
  return std::make_unique<ProcessJob>(folder, run, cpus);
}

std::unique_ptr<SweepJob> StartThreadJob(const SweepFolder& folder, const SweepRun& run,
                                         const std::vector<int>& cpus, const TrainHere& train) {
  return std::make_unique<ThreadJob>(folder, run, cpus, train);
}

std::unique_ptr<SweepJob> StartSweepJob(const SweepFolder& folder, const SweepRun& run,
                                        const std::vector<int>& cpus, const TrainHere& train) {
  const bool gpu = ResolveDevice(run.config) == DeviceChoice::kCuda;
  return gpu ? StartThreadJob(folder, run, cpus, train) : StartProcessJob(folder, run, cpus);
}

}  // namespace uper::cli
