#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace uper {

// Training in turns with the bare emulator, on the same thread: what a core can do changes within
// seconds with what else the machine does, so each turn is compared with the emulator right before
// and right behind it.
class AlternatingBaseline {
 public:
  // `emulator_speed`: times the bare emulator for a moment; frames a second. `now`: seconds.
  explicit AlternatingBaseline(std::function<double()> emulator_speed,
                               std::function<double()> now = SteadySeconds)
      : emulator_speed_(std::move(emulator_speed)), now_(std::move(now)) {}

  // Before the first frame of training.
  void Begin(std::int64_t frames);
  // In the middle of training and at its end: the turn before has ended. Too short ones do not
  // count.
  void Next(std::int64_t frames);

  // Seconds that training waited since Begin().
  double waited_seconds() const { return waited_seconds_; }
  // Of the emulator: one more than turns. Of training: as a share of the mean of the two beside it.
  const std::vector<double>& emulator_speeds() const { return emulator_speeds_; }
  const std::vector<double>& shares() const { return shares_; }

 private:
  static double SteadySeconds();
  void StartTurn(std::int64_t frames);

  std::function<double()> emulator_speed_, now_;
  std::vector<double> emulator_speeds_, shares_;
  double waited_seconds_ = 0;
  std::int64_t turn_frames_ = 0;  // at its start
  double turn_start_ = 0;
};

}  // namespace uper
