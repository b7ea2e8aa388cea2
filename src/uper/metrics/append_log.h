#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace uper {

using WarningCallback = std::function<void(const std::string&)>;

// Forwards a repeated warning at most once per minute.
class RateLimitedWarning {
 public:
  using Clock = std::function<std::chrono::steady_clock::time_point()>;

  explicit RateLimitedWarning(WarningCallback warn, Clock clock = &std::chrono::steady_clock::now);

  void operator()(const std::string& message);

 private:
  WarningCallback warn_;
  Clock clock_;
  bool warned_ = false;
  std::chrono::steady_clock::time_point last_;
};

// The end of a log, for checkpoints.
struct LogPosition {
  std::uint64_t bytes = 0;  // length of the file
  std::string pending;      // records that are not in the file, because writing failed

  bool operator==(const LogPosition&) const = default;
};

// A file that only grows, by whole records. A record that cannot be written is kept and written
// with the next one. So a full disk delays records, but does not lose them or stop the caller. More
// than kMaxPending bytes of kept records are dropped. Only opening throws. Not thread-safe.
class AppendLog {
 public:
  static constexpr std::size_t kMaxPending = std::size_t{4} << 20;

  // Replaces any file by an empty one. Throws Error(kUsage) or Error(kResources).
  static AppendLog Create(const std::filesystem::path& path, RateLimitedWarning warn);
  // Opens the file and removes everything that was appended after `position`. If the file is
  // shorter than that, records are missing: it warns and cuts the file to `whole(content)` bytes,
  // the end of the last whole record.
  static AppendLog Continue(const std::filesystem::path& path, const LogPosition& position,
                            const std::function<std::size_t(std::string_view)>& whole,
                            RateLimitedWarning warn);

  AppendLog(AppendLog&& other) noexcept;
  AppendLog& operator=(AppendLog&&) = delete;
  ~AppendLog();

  // Gives the record to the operating system, so that it survives the end of the process.
  void Append(std::string_view record);
  // Makes the records survive a crash of the machine. Call it before a checkpoint with position()
  // is published. Returns the problem, or "". May be called from any thread.
  std::string Sync() const;
  const LogPosition& position() const { return position_; }

 private:
  AppendLog(std::filesystem::path path, int descriptor, RateLimitedWarning warn);
  bool WritePending();
  void Warn(const std::string& problem);

  std::filesystem::path path_;
  int descriptor_;
  LogPosition position_;
  RateLimitedWarning warn_;
};

}  // namespace uper
