#include "uper/cli/bench/alternating_baseline.h"

#include <chrono>
#include <cstddef>

namespace uper::cli {
namespace {

constexpr double kLeastSeconds = 0.05;  // a shorter turn does not count

}  // namespace

double AlternatingBaseline::SteadySeconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void AlternatingBaseline::Begin(std::int64_t frames) {
  emulator_speeds_.push_back(emulator_speed_());
  StartTurn(frames);
}

void AlternatingBaseline::Next(std::int64_t frames) {
  const double turn_end = now_();
  const double seconds = turn_end - turn_start_;
  if (seconds < kLeastSeconds) return;
  emulator_speeds_.push_back(emulator_speed_());
  const std::size_t turn = emulator_speeds_.size() - 1;
  const double emulator = (emulator_speeds_[turn - 1] + emulator_speeds_[turn]) / 2;
  shares_.push_back(static_cast<double>(frames - turn_frames_) / seconds / emulator);
  waited_seconds_ += now_() - turn_end;
  StartTurn(frames);
}

void AlternatingBaseline::StartTurn(std::int64_t frames) {
  turn_frames_ = frames;
  turn_start_ = now_();
}

}  // namespace uper::cli
