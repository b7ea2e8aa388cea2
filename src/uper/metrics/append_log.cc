#include "uper/metrics/append_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "uper/base/error.h"

namespace uper {
namespace {

int OpenLog(const std::filesystem::path& path, int flags) {
  const int descriptor =
      open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | flags, 0644);
  if (descriptor < 0) {
    throw Error(errno == ENOSPC ? ErrorKind::kResources : ErrorKind::kUsage,
                "cannot write " + path.string() + ": " + strerror(errno));
  }
  return descriptor;
}

std::string ReadAll(int descriptor, std::uint64_t bytes) {
  std::string content(bytes, '\0');
  std::size_t done = 0;
  while (done < content.size()) {
    const ssize_t got =
        pread(descriptor, content.data() + done, content.size() - done, static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    done += static_cast<std::size_t>(got);
  }
  content.resize(done);
  return content;
}

std::uint64_t SizeOf(int descriptor) {
  struct stat status{};
  return fstat(descriptor, &status) == 0 ? static_cast<std::uint64_t>(status.st_size) : 0;
}

}  // namespace

RateLimitedWarning::RateLimitedWarning(WarningCallback warn, Clock clock)
    : warn_(std::move(warn)), clock_(std::move(clock)) {}

void RateLimitedWarning::operator()(const std::string& message) {
  const auto now = clock_();
  if (warned_ && now - last_ < std::chrono::minutes(1)) return;
  warned_ = true;
  last_ = now;
  if (warn_) warn_(message);
}

AppendLog::AppendLog(std::filesystem::path path, int descriptor, RateLimitedWarning warn)
    : path_(std::move(path)), descriptor_(descriptor), warn_(std::move(warn)) {}

AppendLog::AppendLog(AppendLog&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      position_(std::move(other.position_)),
      warn_(std::move(other.warn_)) {}

AppendLog::~AppendLog() {
  if (descriptor_ >= 0) close(descriptor_);
}

AppendLog AppendLog::Create(const std::filesystem::path& path, RateLimitedWarning warn) {
  return {path, OpenLog(path, O_TRUNC), std::move(warn)};
}

AppendLog AppendLog::Continue(const std::filesystem::path& path, const LogPosition& position,
                              const std::function<std::size_t(std::string_view)>& whole,
                              RateLimitedWarning warn) {
  AppendLog log(path, OpenLog(path, 0), std::move(warn));
  log.position_ = position;
  const std::uint64_t size = SizeOf(log.descriptor_);
  if (size < position.bytes) {
    log.position_.bytes = whole(ReadAll(log.descriptor_, size));
    log.Warn("is shorter than at the checkpoint: rows are missing");
  }
  if (ftruncate(log.descriptor_, static_cast<off_t>(log.position_.bytes)) != 0) {
    throw Error(ErrorKind::kUsage, "cannot shorten " + path.string() + ": " + strerror(errno));
  }
  log.WritePending();
  return log;
}

void AppendLog::Append(std::string_view record) {
  if (position_.pending.size() + record.size() > kMaxPending) {
    Warn("cannot be written for too long: rows are given up");
    position_.pending.clear();
  }
  position_.pending.append(record);
  WritePending();
}

bool AppendLog::WritePending() {
  std::string_view rest = position_.pending;
  std::uint64_t at = position_.bytes;
  while (!rest.empty()) {
    const ssize_t written = pwrite(descriptor_, rest.data(), rest.size(), static_cast<off_t>(at));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      Warn(std::string("cannot be written (") + strerror(errno) +
           "); training goes on, the rows are tried again");
      // Readers of the file must not see half a record. If this fails too, the next write
      // overwrites it.
      [[maybe_unused]] const int ignored =
          ftruncate(descriptor_, static_cast<off_t>(position_.bytes));
      return false;
    }
    rest.remove_prefix(static_cast<std::size_t>(written));
    at += static_cast<std::uint64_t>(written);
  }
  position_.bytes = at;
  position_.pending.clear();
  return true;
}

std::string AppendLog::Sync() const {
  if (fsync(descriptor_) == 0) return "";
  return path_.string() + " cannot be saved (" + strerror(errno) + ")";
}

void AppendLog::Warn(const std::string& problem) { warn_(path_.string() + " " + problem); }

}  // namespace uper
