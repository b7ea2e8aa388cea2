#include "uper/train/run/run_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <sstream>

#include "uper/base/error.h"

namespace uper {
namespace {

std::string FirstLineOf(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::string ContentOf(int descriptor) {
  std::array<char, 1024> buffer{};
  const ssize_t bytes = pread(descriptor, buffer.data(), buffer.size(), 0);
  return {buffer.data(), static_cast<std::size_t>(bytes > 0 ? bytes : 0)};
}

[[noreturn]] void ThrowTaken(const std::filesystem::path& lock, const LockHolder& holder) {
  const std::string who =
      holder.process == 0 ? "another process"
                          : "process " + std::to_string(holder.process) + " on host " + holder.host;
  throw Error(ErrorKind::kResources, "run folder " + lock.parent_path().string() +
                                         " is in use by " + who +
                                         "; wait for it or choose another folder with --out");
}

}  // namespace

LockHolder ThisHolder() {
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  return {.process = getpid(),
          .host = host.data(),
          .boot = FirstLineOf("/proc/sys/kernel/random/boot_id")};
}

std::string EncodeHolder(const LockHolder& holder) {
  return "process " + std::to_string(holder.process) + "\nhost " + holder.host + "\nboot " +
         holder.boot + "\n";
}

LockHolder ParseHolder(const std::string& text) {
  LockHolder holder;
  std::istringstream lines(text);
  for (std::string word, value; lines >> word >> value;) {
    if (word == "process") holder.process = std::strtol(value.c_str(), nullptr, 10);
    if (word == "host") holder.host = value;
    if (word == "boot") holder.boot = value;
  }
  return holder;
}

bool MayBeAlive(const LockHolder& holder) {
  const LockHolder here = ThisHolder();
  if (holder.process <= 0) return false;
  if (holder.host != here.host) return true;  // this host cannot check it
  if (holder.boot != here.boot) return false;
  return kill(static_cast<pid_t>(holder.process), 0) == 0 || errno == EPERM;
}

RunLock::RunLock(std::filesystem::path path) : path_(std::move(path)) {
  // Readable by the user only, because the file names host and process.
  descriptor_ = open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (descriptor_ < 0) {
    throw Error(ErrorKind::kUsage, "cannot create " + path_.string() + ": " + strerror(errno));
  }
  try {
    Acquire();
    WriteHolder();
  } catch (...) {
    close(descriptor_);
    throw;
  }
}

RunLock::~RunLock() {
  // The file is not removed: a process that has opened it already would lock a file without a name
  // while a third creates a new one.
  [[maybe_unused]] const int ignored = ftruncate(descriptor_, 0);
  close(descriptor_);
}

void RunLock::Acquire() {
  while (flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    const LockHolder holder = ParseHolder(ContentOf(descriptor_));
    if (errno == EWOULDBLOCK || MayBeAlive(holder)) ThrowTaken(path_, holder);
    return;  // this file system has no locks, and the last holder is gone
  }
}

void RunLock::WriteHolder() const {
  const std::string text = EncodeHolder(ThisHolder());
  const bool written =
      ftruncate(descriptor_, 0) == 0 &&
      pwrite(descriptor_, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size());
  if (!written && errno != ENOSPC && errno != EDQUOT) {
    throw Error(ErrorKind::kUsage, "cannot write " + path_.string() + ": " + strerror(errno));
  }
}

}  // namespace uper
