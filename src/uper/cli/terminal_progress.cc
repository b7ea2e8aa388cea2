#include "uper/cli/terminal_progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>

#include "uper/base/seconds_since.h"

namespace uper::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kProgressBarWidth = 30;
constexpr auto kRedrawPeriod = std::chrono::milliseconds(100);
constexpr int kPlainStepPercent = 25;  // one line per quarter when not on a terminal

}  // namespace

std::string Clocked(double seconds) {
  const long whole = std::lround(seconds);
  return whole < 3600 ? fmt::format("{}:{:02}", whole / 60, whole % 60)
                      : fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

TerminalProgress::TerminalProgress(std::string name)
    : name_(std::move(name)), terminal_(isatty(STDERR_FILENO) != 0), start_(Clock::now()) {}

TerminalProgress::~TerminalProgress() {
  if (terminal_) fmt::print(stderr, "\r\033[K");
}

void TerminalProgress::AddTasks(std::size_t tasks) {
  const std::lock_guard lock(mutex_);
  tasks_ += tasks;
  Draw();
}

void TerminalProgress::TaskDone() {
  const std::lock_guard lock(mutex_);
  ++done_;
  Draw();
}

void TerminalProgress::Warn(const std::string& message) {
  const std::lock_guard lock(mutex_);
  if (terminal_) fmt::print(stderr, "\r\033[K");
  fmt::print(stderr, "uper: {}\n", message);
}

void TerminalProgress::Draw() {
  const double share = tasks_ == 0 ? 0 : static_cast<double>(done_) / static_cast<double>(tasks_);
  const int percent = static_cast<int>(100 * share);
  const double elapsed = SecondsSince(start_);
  const std::string left =
      done_ == 0 ? "" : fmt::format(", {} left", Clocked(elapsed * (1 - share) / share));
  if (!terminal_) {
    if (percent / kPlainStepPercent == last_percent_ / kPlainStepPercent && last_percent_ >= 0) {
      return;
    }
    last_percent_ = percent;
    fmt::print(stderr, "{}: {} % ({} elapsed{})\n", name_, percent, Clocked(elapsed), left);
    return;
  }
  const auto now = Clock::now();
  if (done_ < tasks_ && now - last_draw_ < kRedrawPeriod) return;
  last_draw_ = now;
  const int filled = static_cast<int>(kProgressBarWidth * share);
  fmt::print(stderr, "\r{:<20} [{:=<{}}{:{}}] {:3} % {}{}\033[K", name_, "", filled, "",
             kProgressBarWidth - filled, percent, Clocked(elapsed), left);
  std::fflush(stderr);
}

}  // namespace uper::cli
