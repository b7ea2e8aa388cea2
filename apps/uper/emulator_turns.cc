#include "apps/uper/emulator_turns.h"

#include "apps/uper/bench_timing.h"

namespace uper {
namespace {

constexpr double kLeastSeconds = 0.05;  // of a turn

}  // namespace

void EmulatorTurns::Begin(std::int64_t frames) {
  emulator_speeds_.push_back(emulator_speed_());
  StartTurn(frames);
}

void EmulatorTurns::Next(std::int64_t frames) {
  const double seconds = SecondsSince(turn_start_);
  if (seconds < kLeastSeconds) return;
  const auto pause = Clock::now();
  emulator_speeds_.push_back(emulator_speed_());
  const std::size_t turn = emulator_speeds_.size() - 1;
  const double emulator = (emulator_speeds_[turn - 1] + emulator_speeds_[turn]) / 2;
  shares_.push_back(static_cast<double>(frames - turn_frames_) / seconds / emulator);
  waited_seconds_ += SecondsSince(pause);
  StartTurn(frames);
}

void EmulatorTurns::StartTurn(std::int64_t frames) {
  turn_frames_ = frames;
  turn_start_ = Clock::now();
}

}  // namespace uper
