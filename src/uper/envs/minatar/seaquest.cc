#include "uper/envs/minatar/seaquest.h"

#include <algorithm>
#include <array>
#include <limits>

namespace uper::minatar {
namespace {

constexpr int kSpawnRows = 8;  // rows 1 to 8

bool OnBoard(int column) { return 0 <= column && column < kBoardSize; }

int Ahead(bool right) { return right ? 1 : -1; }

void CountDown(int& timer) { timer = std::max(timer - 1, 0); }

// Index of the first entity in the cell of `other`, or -1.
template <typename List, typename Entity>
int FirstAt(const List& list, const Entity& other) {
  for (int i = 0; i < list.size(); ++i) {
    if (list[i].row == other.row && list[i].column == other.column) return i;
  }
  return -1;
}

// Removes the first entity in the cell of `other`; false when there is none.
template <typename List, typename Entity>
bool RemoveFirstAt(List& list, const Entity& other) {
  const int index = FirstAt(list, other);
  if (index < 0) return false;
  list.RemoveAt(index);
  return true;
}

// Moves a swimmer when its timer has run out. Returns whether it moved.
template <typename Swimmer>
bool Swim(Swimmer& swimmer, int interval) {
  if (swimmer.move_timer > 0) {
    --swimmer.move_timer;
    return false;
  }
  swimmer.move_timer = interval;
  swimmer.column += Ahead(swimmer.right);
  return true;
}

template <typename Swimmers>
void DrawSwimmers(const Swimmers& swimmers, int channel, int trail_channel, Frame& frame) {
  for (const auto& swimmer : swimmers) {
    frame.Set(swimmer.row, swimmer.column, channel);
    frame.SetIfInside(swimmer.row, swimmer.column - Ahead(swimmer.right), trail_channel);
  }
}

}  // namespace

std::span<const GameAction> Seaquest::minimal_actions() const {
  static constexpr std::array kMinimal = {GameAction::kNoOp,  GameAction::kLeft, GameAction::kUp,
                                          GameAction::kRight, GameAction::kDown, GameAction::kFire};
  return kMinimal;
}

void Seaquest::Start(GameRandom&) {
  row_ = 0;
  column_ = 5;
  looks_right_ = false;
  oxygen_ = kFullOxygen;
  divers_on_board_ = 0;
  surfaced_ = true;
  torpedoes_.clear();
  enemy_bullets_.clear();
  fish_.clear();
  enemy_subs_.clear();
  divers_.clear();
  spawn_interval_ = spawn_timer_ = kFirstSpawnInterval;
  diver_spawn_timer_ = kDiverSpawnInterval;
  move_interval_ = kFirstMoveInterval;
  reload_timer_ = 0;
  ramps_ = 0;
}

// The order matters: hits and touches depend on the moves before.
GameStep Seaquest::Act(GameAction action, GameRandom& random) {
  GameStep step;
  SpawnWhenDue(random);
  MovePlayer(action);
  MoveTorpedoes(step);
  MoveDivers();
  MoveEnemySubs(step);
  MoveEnemyBullets(step);
  MoveFish(step);
  TickTimers();
  Breathe(step);
  return step;
}

void Seaquest::SpawnWhenDue(GameRandom& random) {
  if (spawn_timer_ == 0) {
    SpawnEnemy(random);
    spawn_timer_ = spawn_interval_;
  }
  if (diver_spawn_timer_ == 0) {
    SpawnDiver(random);
    diver_spawn_timer_ = kDiverSpawnInterval;
  }
}

// No enemy enters a row in which another one swims the other way.
void Seaquest::SpawnEnemy(GameRandom& random) {
  const bool right = random.Chance(DrawPurpose::kEnemyRight, 1.0 / 2);
  const bool is_sub = random.Chance(DrawPurpose::kEnemyIsSub, 1.0 / 3);
  const int row = 1 + random.Below(DrawPurpose::kEnemyRow, kSpawnRows);
  const auto opposes = [&](const Swimmer& other) {
    return other.row == row && other.right != right;
  };
  if (std::any_of(fish_.begin(), fish_.end(), opposes)) return;
  if (std::any_of(enemy_subs_.begin(), enemy_subs_.end(), opposes)) return;
  (is_sub ? enemy_subs_ : fish_)
      .Add({.row = row,
            .column = right ? 0 : kLastCell,
            .right = right,
            .move_timer = move_interval_,
            .shot_timer = is_sub ? kEnemyShotInterval : 0});
}

void Seaquest::SpawnDiver(GameRandom& random) {
  const bool right = random.Chance(DrawPurpose::kDiverRight, 1.0 / 2);
  const int row = 1 + random.Below(DrawPurpose::kDiverRow, kSpawnRows);
  divers_.Add({.row = row,
               .column = right ? 0 : kLastCell,
               .right = right,
               .move_timer = kDiverMoveInterval});
}

void Seaquest::MovePlayer(GameAction action) {
  switch (action) {
    case GameAction::kNoOp:
      break;
    case GameAction::kLeft:
      column_ = std::max(column_ - 1, 0);
      looks_right_ = false;
      break;
    case GameAction::kRight:
      column_ = std::min(column_ + 1, kLastCell);
      looks_right_ = true;
      break;
    case GameAction::kUp:
      row_ = std::max(row_ - 1, 0);
      break;
    case GameAction::kDown:
      row_ = std::min(row_ + 1, kDeepestRow);
      break;
    case GameAction::kFire:
      if (reload_timer_ > 0) break;
      torpedoes_.Add({.row = row_, .column = column_, .right = looks_right_});
      reload_timer_ = kReloadInterval;
      break;
  }
}

void Seaquest::MoveTorpedoes(GameStep& step) {
  for (int i = torpedoes_.size() - 1; i >= 0; --i) {
    Bullet& torpedo = torpedoes_[i];
    torpedo.column += Ahead(torpedo.right);
    if (!OnBoard(torpedo.column)) {
      torpedoes_.RemoveAt(i);
    } else if (RemoveFirstAt(fish_, torpedo) || RemoveFirstAt(enemy_subs_, torpedo)) {
      torpedoes_.RemoveAt(i);
      ++step.reward;
    }
  }
}

void Seaquest::MoveDivers() {
  for (int i = divers_.size() - 1; i >= 0; --i) {
    if (TakeOnBoard(i) || !Swim(divers_[i], kDiverMoveInterval)) continue;
    if (!OnBoard(divers_[i].column)) {
      divers_.RemoveAt(i);
    } else {
      TakeOnBoard(i);
    }
  }
}

bool Seaquest::TakeOnBoard(int diver) {
  if (!AtPlayer(divers_[diver]) || divers_on_board_ >= kFullBoat) return false;
  divers_.RemoveAt(diver);
  ++divers_on_board_;
  return true;
}

// An enemy touches the player both before and after its move. An enemy that swims into a torpedo is
// hit.
Seaquest::Moved Seaquest::MoveEnemy(Swimmers& enemies, int index, GameStep& step) {
  if (AtPlayer(enemies[index])) step.over = true;
  const bool swam = Swim(enemies[index], move_interval_);
  Moved moved = {.enemy = enemies[index]};
  if (!swam) return moved;
  if (!OnBoard(moved.enemy.column)) {
    moved.gone = true;
  } else if (AtPlayer(moved.enemy)) {
    step.over = true;
  } else if (RemoveFirstAt(torpedoes_, moved.enemy)) {
    ++step.reward;
    moved.gone = true;
  }
  if (moved.gone) enemies.RemoveAt(index);
  return moved;
}

// A submarine that is due to shoot does so even when it is hit in the same step.
void Seaquest::MoveEnemySubs(GameStep& step) {
  for (int i = enemy_subs_.size() - 1; i >= 0; --i) {
    const Moved moved = MoveEnemy(enemy_subs_, i, step);
    const Swimmer& sub = moved.enemy;
    const bool shoots = sub.shot_timer == 0;
    if (shoots) enemy_bullets_.Add({.row = sub.row, .column = sub.column, .right = sub.right});
    if (!moved.gone) {
      enemy_subs_[i].shot_timer = shoots ? kEnemyShotInterval : sub.shot_timer - 1;
    }
  }
}

void Seaquest::MoveEnemyBullets(GameStep& step) {
  for (int i = enemy_bullets_.size() - 1; i >= 0; --i) {
    Bullet& bullet = enemy_bullets_[i];
    if (AtPlayer(bullet)) step.over = true;
    bullet.column += Ahead(bullet.right);
    if (AtPlayer(bullet)) step.over = true;
    if (!OnBoard(bullet.column)) enemy_bullets_.RemoveAt(i);
  }
}

void Seaquest::MoveFish(GameStep& step) {
  for (int i = fish_.size() - 1; i >= 0; --i) MoveEnemy(fish_, i, step);
}

void Seaquest::TickTimers() {
  CountDown(spawn_timer_);
  CountDown(diver_spawn_timer_);
  CountDown(reload_timer_);
}

void Seaquest::Breathe(GameStep& step) {
  if (oxygen_ <= 0) step.over = true;
  if (row_ > 0) {
    --oxygen_;
    surfaced_ = false;
  } else if (!surfaced_) {
    if (divers_on_board_ == 0) {
      step.over = true;
    } else {
      step.reward += Surface();
    }
  }
}

// Returns the reward of surfacing.
int Seaquest::Surface() {
  surfaced_ = true;
  int reward = 0;
  if (divers_on_board_ == kFullBoat) {
    divers_on_board_ = 0;
    reward = oxygen_ * 10 / kFullOxygen;
  }
  --divers_on_board_;
  oxygen_ = kFullOxygen;
  if (ramping_) Ramp();
  return reward;
}

void Seaquest::Ramp() {
  if (spawn_interval_ == 1 && move_interval_ == kLastMoveInterval) return;
  if (ramps_ % 2 == 1) move_interval_ = std::max(move_interval_ - 1, kLastMoveInterval);
  spawn_interval_ = std::max(spawn_interval_ - 1, 1);
  ++ramps_;
}

void Seaquest::Draw(Frame& frame) const {
  frame.Set(row_, column_, kSubFront);
  frame.Set(row_, column_ - Ahead(looks_right_), kSubBack);  // looks away from its wall: inside
  const int oxygen_cells = std::max(oxygen_, 0) * 10 / kFullOxygen;
  for (int i = 0; i < oxygen_cells; ++i) frame.Set(kLastCell, i, kOxygenGauge);
  for (int i = 1; i <= divers_on_board_; ++i) frame.Set(kLastCell, kLastCell - i, kDiverGauge);
  for (const Bullet& bullet : torpedoes_) frame.Set(bullet.row, bullet.column, kFriendlyBullet);
  for (const Bullet& bullet : enemy_bullets_) frame.Set(bullet.row, bullet.column, kEnemyBullet);
  DrawSwimmers(fish_, kEnemyFish, kTrail, frame);
  DrawSwimmers(enemy_subs_, kEnemySub, kTrail, frame);
  DrawSwimmers(divers_, kDiver, kTrail, frame);
}

template <typename Archive, typename Game>
void Seaquest::VisitState(Archive& archive, Game& game) {
  archive.Int(game.row_, 0, kDeepestRow);
  archive.Bool(game.looks_right_);
  archive.Int(game.column_, game.looks_right_ ? 1 : 0, game.looks_right_ ? 9 : 8);
  archive.Int(game.oxygen_, -1, kFullOxygen);
  archive.Int(game.divers_on_board_, std::numeric_limits<int>::min() / 2, kFullBoat);
  archive.Bool(game.surfaced_);
  for (auto* bullets : {&game.torpedoes_, &game.enemy_bullets_}) {
    archive.Size(*bullets);
    for (auto& bullet : *bullets) {
      archive.Int(bullet.row, 0, kDeepestRow);
      archive.Int(bullet.column, 0, kLastCell);
      archive.Bool(bullet.right);
    }
  }
  for (auto* swimmers : {&game.fish_, &game.enemy_subs_, &game.divers_}) {
    archive.Size(*swimmers);
    for (auto& swimmer : *swimmers) {
      archive.Int(swimmer.row, 1, kDeepestRow);
      archive.Int(swimmer.column, 0, kLastCell);
      archive.Bool(swimmer.right);
      archive.Int(swimmer.move_timer, 0, kFirstMoveInterval);
      archive.Int(swimmer.shot_timer, 0, kEnemyShotInterval);
    }
  }
  archive.Int(game.spawn_interval_, 1, kFirstSpawnInterval);
  archive.Int(game.spawn_timer_, 0, kFirstSpawnInterval);
  archive.Int(game.diver_spawn_timer_, 0, kDiverSpawnInterval);
  archive.Int(game.move_interval_, kLastMoveInterval, kFirstMoveInterval);
  archive.Int(game.reload_timer_, 0, kReloadInterval);
  archive.Int(game.ramps_, 0, kFirstSpawnInterval);
}

void Seaquest::Save(ByteWriter& writer) const {
  StateSaver saver(writer);
  VisitState(saver, *this);
}

void Seaquest::Restore(ByteReader& reader) {
  StateLoader loader(reader);
  VisitState(loader, *this);
}

}  // namespace uper::minatar
