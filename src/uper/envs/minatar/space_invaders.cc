#include "uper/envs/minatar/space_invaders.h"

#include <algorithm>

#include "uper/envs/minatar/game_state.h"

namespace uper::minatar {

std::span<const GameAction> SpaceInvaders::minimal_actions() const {
  static constexpr std::array kMinimal = {GameAction::kNoOp, GameAction::kLeft, GameAction::kRight,
                                          GameAction::kFire};
  return kMinimal;
}

void SpaceInvaders::Start(GameRandom&) {
  cannon_ = 5;
  aliens_ = friendly_bullets_ = enemy_bullets_ = {};
  aliens_.AddBlock(0, 4, 2, 8);
  aliens_go_left_ = true;
  move_interval_ = move_timer_ = kFirstMoveInterval;
  alien_shot_timer_ = kAlienShotInterval;
  reload_timer_ = 0;
}

GameStep SpaceInvaders::Act(GameAction action, GameRandom&) {
  GameStep step;
  MoveCannon(action);
  friendly_bullets_.ShiftUp();
  enemy_bullets_.ShiftDown();
  step.over = enemy_bullets_.Has(kLastCell, cannon_) || AlienAtCannon();
  if (move_timer_ == 0) MarchAliens(step);
  if (alien_shot_timer_ == 0) ShootBack();
  HitAliens(step);
  reload_timer_ = std::max(reload_timer_ - 1, 0);
  --move_timer_;
  --alien_shot_timer_;
  if (aliens_.IsEmpty()) NextWave();
  return step;
}

void SpaceInvaders::MoveCannon(GameAction action) {
  if (action == GameAction::kLeft) cannon_ = std::max(cannon_ - 1, 0);
  if (action == GameAction::kRight) cannon_ = std::min(cannon_ + 1, kLastCell);
  if (action == GameAction::kFire && reload_timer_ == 0) {
    friendly_bullets_.Add(kLastCell, cannon_);
    reload_timer_ = kReloadInterval;
  }
}

void SpaceInvaders::MarchAliens(GameStep& step) {
  move_timer_ = std::min(aliens_.Count(), move_interval_);
  if (aliens_.HasInColumn(aliens_go_left_ ? 0 : kLastCell)) {
    aliens_go_left_ = !aliens_go_left_;
    if (aliens_.HasInRow(kLastCell)) step.over = true;
    aliens_.RotateDown();  // the last frame of a lost game shows the invaders at the top
  } else if (aliens_go_left_) {
    aliens_.ShiftLeft();
  } else {
    aliens_.ShiftRight();
  }
  if (AlienAtCannon()) step.over = true;
}

// The lowest alien of the nearest column shoots; of two equally near columns the left one.
void SpaceInvaders::ShootBack() {
  alien_shot_timer_ = kAlienShotInterval;
  for (int distance = 0; distance < kBoardSize; ++distance) {
    for (const int column : {cannon_ - distance, cannon_ + distance}) {
      if (column < 0 || column > kLastCell || !aliens_.HasInColumn(column)) continue;
      enemy_bullets_.Add(aliens_.LowestInColumn(column), column);
      return;
    }
  }
}

void SpaceInvaders::HitAliens(GameStep& step) {
  const BitBoard hit = aliens_.Intersection(friendly_bullets_);
  step.reward += hit.Count();
  aliens_.Remove(hit);
  friendly_bullets_.Remove(hit);
}

// The timers run on: only the interval of later moves changes.
void SpaceInvaders::NextWave() {
  if (ramping_) move_interval_ = std::max(move_interval_ - 1, kLastMoveInterval);
  aliens_.AddBlock(0, 4, 2, 8);
}

void SpaceInvaders::Draw(Frame& frame) const {
  frame.Set(kLastCell, cannon_, kCannon);
  aliens_.Draw(frame, kAlien);
  aliens_.Draw(frame, aliens_go_left_ ? kAlienLeft : kAlienRight);
  friendly_bullets_.Draw(frame, kFriendlyBullet);
  enemy_bullets_.Draw(frame, kEnemyBullet);
}

template <typename Archive, typename Game>
void SpaceInvaders::VisitState(Archive& archive, Game& game) {
  archive.Int(game.cannon_, 0, kLastCell);
  BitBoard::VisitState(archive, game.aliens_);
  BitBoard::VisitState(archive, game.friendly_bullets_);
  BitBoard::VisitState(archive, game.enemy_bullets_);
  archive.Bool(game.aliens_go_left_);
  archive.Int(game.move_interval_, kLastMoveInterval, kFirstMoveInterval);
  archive.Int(game.move_timer_, 0, kFirstMoveInterval);
  archive.Int(game.alien_shot_timer_, 0, kAlienShotInterval);
  archive.Int(game.reload_timer_, 0, kReloadInterval);
}

void SpaceInvaders::Save(ByteWriter& writer) const {
  StateSaver saver(writer);
  VisitState(saver, *this);
}

void SpaceInvaders::Restore(ByteReader& reader) {
  StateLoader loader(reader);
  VisitState(loader, *this);
}

}  // namespace uper::minatar
