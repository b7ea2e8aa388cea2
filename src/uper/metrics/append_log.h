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

// Lets a repeated warning through once a minute.
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

// How far a log has come; part of a checkpoint.
struct LogPosition {
  std::uint64_t bytes = 0;  // of the file
  std::string pending;      // appended but not in the file yet, because writing failed

  bool operator==(const LogPosition&) const = default;
};

// A file that only grows, by whole records. A record that cannot be written is kept and tried again
// with the next one (up to kMaxPending bytes; then they are given up), so a full disk delays rows
// but neither loses them nor stops the caller. Only opening throws. Not thread-safe.
class AppendLog {
 public:
  static constexpr std::size_t kMaxPending = std::size_t{4} << 20;

  // A new, empty file in the place of any other. Throws Error(kUsage) or Error(kResources).
  static AppendLog Create(const std::filesystem::path& path, RateLimitedWarning warn);
  // The file cut to where it was at `position`: what was appended later is gone. If it is shorter
  // than that, rows are missing, which is warned about, and the rest is cut to `whole(content)`
  // bytes, the end of its last whole record.
  static AppendLog Continue(const std::filesystem::path& path, const LogPosition& position,
                            const std::function<std::size_t(std::string_view)>& whole,
                            RateLimitedWarning warn);

  AppendLog(AppendLog&& other) noexcept;
  AppendLog& operator=(AppendLog&&) = delete;
  ~AppendLog();

  // Hands the record to the system, so that it survives the process.
  void Append(std::string_view record);
  // Makes what was appended survive the machine too: has to be done before a checkpoint with
  // position() counts. Returns what went wrong, or "". May be called from any thread.
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
