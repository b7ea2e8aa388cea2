#include "uper/envs/minatar/breakout.h"

#include <algorithm>

#include "uper/envs/minatar/game_state.h"

namespace uper::minatar {
namespace {

void StackBricks(BitBoard& bricks) { bricks.AddBlock(1, 4, 0, kBoardSize); }

}  // namespace

std::span<const GameAction> Breakout::minimal_actions() const {
  static constexpr std::array kMinimal = {GameAction::kNoOp, GameAction::kLeft, GameAction::kRight};
  return kMinimal;
}

void Breakout::Start(GameRandom& random) {
  right_ = random.Below(DrawPurpose::kBallSide, 2) == 0;
  down_ = true;
  ball_ = last_ball_ = {.row = 3, .column = right_ ? 0 : kLastCell};
  paddle_ = 4;
  in_bricks_ = false;
  bricks_ = {};
  StackBricks(bricks_);
}

GameStep Breakout::Act(GameAction action, GameRandom&) {
  GameStep step;
  MovePaddle(action);
  last_ball_ = ball_;
  Cell next = {.row = ball_.row + (down_ ? 1 : -1), .column = ball_.column + (right_ ? 1 : -1)};
  MeetSideWall(next);
  bool in_brick = false;
  if (next.row < 0) {
    next.row = 0;
    down_ = true;
  } else if (bricks_.Has(next.row, next.column)) {
    in_brick = true;
    if (!in_bricks_) HitBrick(next, step);
  } else if (next.row == kLastCell) {
    ReachBottom(next, step);
  }
  in_bricks_ = in_brick;
  ball_ = next;
  return step;
}

void Breakout::MovePaddle(GameAction action) {
  if (action == GameAction::kLeft) paddle_ = std::max(paddle_ - 1, 0);
  if (action == GameAction::kRight) paddle_ = std::min(paddle_ + 1, kLastCell);
}

// At a side wall the ball stays in the outermost column for this step.
void Breakout::MeetSideWall(Cell& next) {
  if (0 <= next.column && next.column < kBoardSize) return;
  next.column = std::clamp(next.column, 0, kLastCell);
  right_ = !right_;
}

void Breakout::HitBrick(Cell& next, GameStep& step) {
  ++step.reward;
  bricks_.Remove(next.row, next.column);
  next.row = ball_.row;
  down_ = !down_;
}

// A ball right above the paddle is reflected up. A ball that meets the paddle from the side returns
// the way it came.
void Breakout::ReachBottom(Cell& next, GameStep& step) {
  if (bricks_.IsEmpty()) StackBricks(bricks_);
  const bool from_above = ball_.column == paddle_;
  if (!from_above && next.column != paddle_) {
    step.over = true;
    return;
  }
  if (!from_above) right_ = !right_;
  down_ = false;
  next.row = ball_.row;
}

void Breakout::Draw(Frame& frame) const {
  frame.Set(ball_.row, ball_.column, kBall);
  frame.Set(kLastCell, paddle_, kPaddle);
  frame.Set(last_ball_.row, last_ball_.column, kTrail);
  bricks_.Draw(frame, kBrick);
}

template <typename Archive, typename Game>
void Breakout::VisitState(Archive& archive, Game& game) {
  archive.Int(game.paddle_, 0, kLastCell);
  archive.Int(game.ball_.row, 0, kLastCell);
  archive.Int(game.ball_.column, 0, kLastCell);
  archive.Int(game.last_ball_.row, 0, kLastCell);
  archive.Int(game.last_ball_.column, 0, kLastCell);
  archive.Bool(game.down_);
  archive.Bool(game.right_);
  archive.Bool(game.in_bricks_);
  BitBoard::VisitState(archive, game.bricks_);
}

void Breakout::Save(ByteWriter& writer) const {
  StateSaver saver(writer);
  VisitState(saver, *this);
}

void Breakout::Restore(ByteReader& reader) {
  StateLoader loader(reader);
  VisitState(loader, *this);
}

}  // namespace uper::minatar
