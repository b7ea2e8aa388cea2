#include "uper/envs/minatar/asterix.h"

#include <algorithm>

#include "uper/envs/minatar/game_state.h"

namespace uper::minatar {

std::span<const GameAction> Asterix::minimal_actions() const {
  static constexpr std::array kMinimal = {GameAction::kNoOp, GameAction::kLeft, GameAction::kUp,
                                          GameAction::kRight, GameAction::kDown};
  return kMinimal;
}

void Asterix::Start(GameRandom&) {
  player_row_ = 5;
  player_column_ = 5;
  lanes_.fill({});
  spawn_interval_ = spawn_timer_ = kFirstSpawnInterval;
  move_interval_ = move_timer_ = kFirstMoveInterval;
  ramp_timer_ = kRampInterval;
  ramps_ = 0;
}

GameStep Asterix::Act(GameAction action, GameRandom& random) {
  GameStep step;
  if (spawn_timer_ == 0) {
    SendVisitor(random);
    spawn_timer_ = spawn_interval_;
  }
  MovePlayer(action);
  Meet(step);
  if (move_timer_ == 0) {
    move_timer_ = move_interval_;
    MoveVisitors();
    Meet(step);
  }
  --spawn_timer_;
  --move_timer_;
  if (ramping_) Ramp();
  return step;
}

void Asterix::SendVisitor(GameRandom& random) {
  const bool right = random.Chance(DrawPurpose::kVisitorRight, 1.0 / 2);
  const bool gold = random.Chance(DrawPurpose::kVisitorIsGold, 1.0 / 3);
  const auto empty = std::count_if(lanes_.begin(), lanes_.end(),
                                   [](const Visitor& visitor) { return !visitor.here; });
  if (empty == 0) return;
  int skip = random.Below(DrawPurpose::kVisitorLane, static_cast<int>(empty));
  for (Visitor& lane : lanes_) {
    if (lane.here || skip-- > 0) continue;
    lane = {.here = true, .column = right ? 0 : kLastCell, .right = right, .gold = gold};
    return;
  }
}

void Asterix::MovePlayer(GameAction action) {
  switch (action) {
    case GameAction::kLeft:
      player_column_ = std::max(player_column_ - 1, 0);
      break;
    case GameAction::kRight:
      player_column_ = std::min(player_column_ + 1, kLastCell);
      break;
    case GameAction::kUp:
      player_row_ = std::max(player_row_ - 1, 1);
      break;
    case GameAction::kDown:
      player_row_ = std::min(player_row_ + 1, kLanes);
      break;
    case GameAction::kNoOp:
    case GameAction::kFire:
      break;
  }
}

void Asterix::MoveVisitors() {
  for (Visitor& visitor : lanes_) {
    if (!visitor.here) continue;
    visitor.column += visitor.right ? 1 : -1;
    visitor.here = 0 <= visitor.column && visitor.column < kBoardSize;
    if (!visitor.here) visitor = {};
  }
}

// Only the visitor of the player's own lane can touch the player.
void Asterix::Meet(GameStep& step) {
  Visitor& visitor = lanes_[static_cast<std::size_t>(player_row_ - 1)];
  if (!visitor.here || visitor.column != player_column_) return;
  if (visitor.gold) {
    ++step.reward;
    visitor = {};
  } else {
    step.over = true;
  }
}

// The timer counts from 100 through 0 to -1, and the ramp takes one step more: 102 steps per ramp.
void Asterix::Ramp() {
  if (spawn_interval_ == 1 && move_interval_ == 1) return;
  if (ramp_timer_ >= 0) {
    --ramp_timer_;
    return;
  }
  if (ramps_ % 2 == 1) move_interval_ = std::max(move_interval_ - 1, 1);
  spawn_interval_ = std::max(spawn_interval_ - 1, 1);
  ++ramps_;
  ramp_timer_ = kRampInterval;
}

void Asterix::Draw(Frame& frame) const {
  frame.Set(player_row_, player_column_, kPlayer);
  for (int lane = 0; lane < kLanes; ++lane) {
    const Visitor& visitor = lanes_[static_cast<std::size_t>(lane)];
    if (!visitor.here) continue;
    frame.Set(lane + 1, visitor.column, visitor.gold ? kGold : kEnemy);
    frame.SetIfInside(lane + 1, visitor.column + (visitor.right ? -1 : 1), kTrail);
  }
}

template <typename Archive, typename Game>
void Asterix::VisitState(Archive& archive, Game& game) {
  archive.Int(game.player_row_, 1, kLanes);
  archive.Int(game.player_column_, 0, kLastCell);
  for (auto& visitor : game.lanes_) {
    archive.Bool(visitor.here);
    archive.Int(visitor.column, 0, kLastCell);
    archive.Bool(visitor.right);
    archive.Bool(visitor.gold);
  }
  archive.Int(game.spawn_interval_, 1, kFirstSpawnInterval);
  archive.Int(game.spawn_timer_, 0, kFirstSpawnInterval);
  archive.Int(game.move_interval_, 1, kFirstMoveInterval);
  archive.Int(game.move_timer_, 0, kFirstMoveInterval);
  archive.Int(game.ramp_timer_, -1, kRampInterval);
  archive.Int(game.ramps_, 0, kFirstSpawnInterval);
}

void Asterix::Save(ByteWriter& writer) const {
  StateSaver saver(writer);
  VisitState(saver, *this);
}

void Asterix::Restore(ByteReader& reader) {
  StateLoader loader(reader);
  VisitState(loader, *this);
}

}  // namespace uper::minatar
