#include "uper/envs/minatar/freeway.h"

#include <algorithm>

#include "uper/envs/minatar/game_state.h"

namespace uper::minatar {

std::span<const GameAction> Freeway::minimal_actions() const {
  static constexpr std::array kMinimal = {GameAction::kNoOp, GameAction::kUp, GameAction::kDown};
  return kMinimal;
}

void Freeway::Start(GameRandom& random) {
  cars_.fill({});  // every car at the left wall
  DrawTraffic(random);
  chicken_row_ = kLastCell;
  walk_timer_ = kWalkInterval;
  steps_left_ = kTimeLimit;
}

GameStep Freeway::Act(GameAction action, GameRandom& random) {
  GameStep step;
  Walk(action);
  if (chicken_row_ == 0) {
    ++step.reward;
    DrawTraffic(random);
    chicken_row_ = kLastCell;
  }
  for (int lane = 0; lane < kLanes; ++lane) Drive(cars_[static_cast<std::size_t>(lane)], lane + 1);
  walk_timer_ = std::max(walk_timer_ - 1, 0);
  step.over = steps_left_ == 0;
  --steps_left_;
  return step;
}

// New speeds and directions; the cars stay where they are.
void Freeway::DrawTraffic(GameRandom& random) {
  for (Car& car : cars_) {
    car.interval = random.Below(DrawPurpose::kCarSpeed, kSlowest) + 1;
    car.timer = car.interval;
    car.left = random.Chance(DrawPurpose::kCarGoesLeft, 0.5);
  }
}

// A step down in the bottom row also starts the pause between steps.
void Freeway::Walk(GameAction action) {
  const bool walks = action == GameAction::kUp || action == GameAction::kDown;
  if (!walks || walk_timer_ != 0) return;
  walk_timer_ = kWalkInterval;
  chicken_row_ = action == GameAction::kUp ? std::max(chicken_row_ - 1, 0)
                                           : std::min(chicken_row_ + 1, kLastCell);
}

// The chicken is hit where the car stands as well as where it drives to.
void Freeway::Drive(Car& car, int row) {
  bool hit = car.column == kChickenColumn;
  if (car.timer == 0) {
    car.timer = car.interval;
    car.column = (car.column + (car.left ? kBoardSize - 1 : 1)) % kBoardSize;
    hit = hit || car.column == kChickenColumn;
  } else {
    --car.timer;
  }
  if (hit && chicken_row_ == row) chicken_row_ = kLastCell;
}

void Freeway::Draw(Frame& frame) const {
  frame.Set(chicken_row_, kChickenColumn, kChicken);
  for (int lane = 0; lane < kLanes; ++lane) {
    const Car& car = cars_[static_cast<std::size_t>(lane)];
    const int behind = (car.column + (car.left ? 1 : kBoardSize - 1)) % kBoardSize;
    frame.Set(lane + 1, car.column, kCar);
    frame.Set(lane + 1, behind, kSpeed1 + car.interval - 1);
  }
}

template <typename Archive, typename Game>
void Freeway::VisitState(Archive& archive, Game& game) {
  archive.Int(game.chicken_row_, 1, kLastCell);
  for (auto& car : game.cars_) {
    archive.Int(car.column, 0, kLastCell);
    archive.Int(car.interval, 1, kSlowest);
    archive.Int(car.timer, 0, kSlowest);
    archive.Bool(car.left);
  }
  archive.Int(game.walk_timer_, 0, kWalkInterval);
  archive.Int(game.steps_left_, -1, kTimeLimit);
}

void Freeway::Save(ByteWriter& writer) const {
  StateSaver saver(writer);
  VisitState(saver, *this);
}

void Freeway::Restore(ByteReader& reader) {
  StateLoader loader(reader);
  VisitState(loader, *this);
}

}  // namespace uper::minatar
