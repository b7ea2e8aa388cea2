#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace uper::cli {

// Alternates training and the bare emulator on the same thread. The speed of a core changes within
// seconds when other programs run. Each turn of training is therefore compared with the emulator
// right before and right after it.
class AlternatingBaseline {
 public:
  // `emulator_speed` runs the bare emulator for a moment and returns frames per second. `now` is a
  // clock in seconds.
  explicit AlternatingBaseline(std::function<double()> emulator_speed,
                               std::function<double()> now = SteadySeconds)
      : emulator_speed_(std::move(emulator_speed)), now_(std::move(now)) {}

  // Call it before the first frame of training.
  void Begin(std::int64_t frames);
  // Ends a turn, in the middle of training or at its end. A turn that is too short continues.
  void Next(std::int64_t frames);

  // Seconds that training has waited since Begin().
  double waited_seconds() const { return waited_seconds_; }
  // Speeds of the emulator, one more than turns. Speed of training in each turn, as a share of the
  // mean of the emulator's speeds before and after it.
  const std::vector<double>& emulator_speeds() const { return emulator_speeds_; }
  const std::vector<double>& shares() const { return shares_; }

 private:
  static double SteadySeconds();
  void StartTurn(std::int64_t frames);

  std::function<double()> emulator_speed_, now_;
  std::vector<double> emulator_speeds_, shares_;
  double waited_seconds_ = 0;
  std::int64_t turn_frames_ = 0;  // frames at the start of the turn
  double turn_start_ = 0;
};

}  // namespace uper::cli
