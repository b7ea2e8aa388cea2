#pragma once

#include "uper/envs/minatar/bit_board.h"
#include "uper/envs/minatar/minatar_game.h"

namespace uper::minatar {

// The ball flies diagonally, one cell per step, and is reflected by the walls, the ceiling, the
// bricks of rows 1 to 3 (each pays 1 and is gone) and the paddle in the bottom row. After a brick
// the ball passes through further bricks unhurt until it was in a free cell. When the bricks are
// gone, new ones stand there as soon as the ball comes down to the bottom row. The game is over
// when the ball reaches that row beside the paddle. A trail shows the ball's last cell. No ramping.
class Breakout final : public MinAtarGame {
 public:
  enum Channel { kPaddle, kBall, kTrail, kBrick, kChannels };

  int channels() const override { return kChannels; }
  std::span<const GameAction> minimal_actions() const override;
  void Start(GameRandom& random) override;
  GameStep Act(GameAction action, GameRandom& random) override;
  void Draw(Frame& frame) const override;
  void Save(ByteWriter& writer) const override;
  void Restore(ByteReader& reader) override;

 private:
  struct Cell {
    int row = 3;
    int column = 0;
  };

  void MovePaddle(GameAction action);
  void MeetSideWall(Cell& next);
  void HitBrick(Cell& next, GameStep& step);
  void ReachBottom(Cell& next, GameStep& step);

  template <typename Archive, typename Game>
  static void VisitState(Archive& archive, Game& game);

  int paddle_ = 4;  // column
  Cell ball_;
  Cell last_ball_;    // where the ball was a step ago
  bool down_ = true;  // the ball's direction
  bool right_ = true;
  bool in_bricks_ = false;  // the ball has hit a brick and not been in a free cell since
  BitBoard bricks_;
};

}  // namespace uper::minatar
