#include "uper/cli/sweep/child_process.h"

#include <fcntl.h>
#include <sched.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "uper/base/error.h"

extern char** environ;

namespace uper::cli {
namespace {

// The file that this process runs, even if another file has its name now.
constexpr const char* kThisFile = "/proc/self/exe";

std::vector<char*> Pointers(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// Runs between fork and exec, so it makes only calls that are safe there and allocates nothing.
[[noreturn]] void BecomeChild(char* const* command, int log, const cpu_set_t* cpus, pid_t parent) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(1);  // the parent died before prctl()
  const int nothing = open("/dev/null", O_RDONLY);
  if (nothing >= 0) dup2(nothing, STDIN_FILENO);
  dup2(log, STDOUT_FILENO);
  dup2(log, STDERR_FILENO);
  if (cpus != nullptr) sched_setaffinity(0, sizeof(*cpus), cpus);
  execv(kThisFile, command);
  _exit(127);
}

int StatusOf(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::string ReadAll(int descriptor) {
  std::string content;
  char block[4096];
  while (true) {
    const ssize_t count = read(descriptor, block, sizeof(block));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return content;
    content.append(block, static_cast<std::size_t>(count));
  }
}

}  // namespace

std::filesystem::path ThisProgram() {
  constexpr std::string_view kReplaced = " (deleted)";  // suffix that the kernel adds
  std::string path = std::filesystem::read_symlink(kThisFile).string();
  if (path.ends_with(kReplaced)) path.resize(path.size() - kReplaced.size());
  return path;
}

void BecomeThisProgram(const std::vector<std::string>& command) {
  execv(kThisFile, Pointers(command).data());
  throw Error(ErrorKind::kResources, "cannot start " + command[0] + ": " + std::strerror(errno));
}

pid_t StartChild(const ChildOptions& options) {
  const std::vector<char*> command = Pointers(options.command);
  const int log = open(options.log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (log < 0) {
    throw Error(ErrorKind::kResources,
                "cannot write " + options.log.string() + ": " + std::strerror(errno));
  }
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  for (const int cpu : options.cpus) CPU_SET(static_cast<std::size_t>(cpu), &cpus);
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child == 0) BecomeChild(command.data(), log, options.cpus.empty() ? nullptr : &cpus, parent);
  const int error = errno;
  close(log);
  if (child < 0) {
    throw Error(ErrorKind::kResources,
                std::string("cannot start a process: ") + std::strerror(error));
  }
  return child;
}

std::optional<int> ExitStatusIfEnded(pid_t child) {
  int status = 0;
  const pid_t ended = waitpid(child, &status, WNOHANG);
  if (ended != child) return std::nullopt;
  return StatusOf(status);
}

std::vector<int> UsableCpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(static_cast<std::size_t>(cpu), &set)) cpus.push_back(cpu);
  }
  return cpus;
}

CommandResult RunCommand(const std::vector<std::string>& command, bool quiet) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw Error(ErrorKind::kResources, std::strerror(errno));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  if (quiet) {
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  }
  pid_t process = 0;
  const int error = posix_spawnp(&process, command[0].c_str(), &actions, nullptr,
                                 Pointers(command).data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  CommandResult result;
  if (error == 0) {
    result.output = ReadAll(ends[0]);
    int status = 0;
    while (waitpid(process, &status, 0) < 0 && errno == EINTR) {
    }
    result.exit_status = StatusOf(status);
  }
  close(ends[0]);
  if (error != 0) {
    throw Error(ErrorKind::kMissingData,
                "cannot start " + command[0] + ": " + std::strerror(error));
  }
  return result;
}

}  // namespace uper::cli
