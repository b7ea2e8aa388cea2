#pragma once

#include <array>

#include "uper/envs/minatar/minatar_game.h"

namespace uper::minatar {

// A chicken in column 4 walks up from the bottom row, a row every three steps at most, across eight
// lanes with one car each. At the top it gets 1, goes back to the bottom, and speeds and directions
// of all cars are drawn anew; hit by a car it goes back, too. A car of speed channel k moves every
// k + 1 steps and comes back at the other side. Its trail, in the channel of its speed, shows where
// it comes from. The game is over after 2501 steps. No ramping.
class Freeway final : public MinAtarGame {
 public:
  enum Channel { kChicken, kCar, kSpeed1, kSpeed2, kSpeed3, kSpeed4, kSpeed5, kChannels };

  int channels() const override { return kChannels; }
  std::span<const GameAction> minimal_actions() const override;
  void Start(GameRandom& random) override;
  GameStep Act(GameAction action, GameRandom& random) override;
  void Draw(Frame& frame) const override;
  void Save(ByteWriter& writer) const override;
  void Restore(ByteReader& reader) override;

 private:
  static constexpr int kLanes = 8;  // lane i is row i + 1
  static constexpr int kChickenColumn = 4;
  static constexpr int kWalkInterval = 3;
  static constexpr int kTimeLimit = 2500;
  static constexpr int kSlowest = 5;

  struct Car {
    int column = 0;
    int interval = 1;  // 1 to 5; moves every interval + 1 steps
    int timer = 0;
    bool left = false;
  };

  void DrawTraffic(GameRandom& random);
  void Walk(GameAction action);
  void Drive(Car& car, int row);

  template <typename Archive, typename Game>
  static void VisitState(Archive& archive, Game& game);

  int chicken_row_ = kLastCell;
  std::array<Car, kLanes> cars_;
  int walk_timer_ = kWalkInterval;
  int steps_left_ = kTimeLimit;  // the step taken at 0 is the last
};

}  // namespace uper::minatar
