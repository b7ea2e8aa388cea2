#pragma once

#include <array>

#include "uper/envs/minatar/minatar_game.h"

namespace uper::minatar {

// The player walks freely in rows 1 to 8. Each of these rows is a lane for at most one visitor,
// which crosses it from wall to wall. Gold (one visitor in three) pays 1 when touched; an enemy
// ends the game. A trail shows where a visitor comes from. A visitor comes every `spawn_interval`
// steps into a random empty lane, all move every `move_interval` steps. Ramping: about every
// hundred steps the spawn interval falls by one (10 to 1), every second time the move interval too
// (5 to 1).
class Asterix final : public MinAtarGame {
 public:
  enum Channel { kPlayer, kEnemy, kTrail, kGold, kChannels };

  explicit Asterix(bool ramping) : ramping_(ramping) {}

  int channels() const override { return kChannels; }
  std::span<const GameAction> minimal_actions() const override;
  void Start(GameRandom& random) override;
  GameStep Act(GameAction action, GameRandom& random) override;
  void Draw(Frame& frame) const override;
  void Save(ByteWriter& writer) const override;
  void Restore(ByteReader& reader) override;

 private:
  static constexpr int kLanes = 8;           // lane i is row i + 1
  static constexpr int kRampInterval = 100;  // a ramp takes two steps more, see Ramp()
  static constexpr int kFirstSpawnInterval = 10;
  static constexpr int kFirstMoveInterval = 5;

  struct Visitor {
    bool here = false;
    int column = 0;
    bool right = false;
    bool gold = false;
  };

  void SendVisitor(GameRandom& random);
  void MovePlayer(GameAction action);
  void MoveVisitors();
  void Meet(GameStep& step);
  void Ramp();

  template <typename Archive, typename Game>
  static void VisitState(Archive& archive, Game& game);

  // Constant after construction.
  const bool ramping_;

  int player_row_ = 5;
  int player_column_ = 5;
  std::array<Visitor, kLanes> lanes_;
  int spawn_interval_ = kFirstSpawnInterval;
  int spawn_timer_ = kFirstSpawnInterval;
  int move_interval_ = kFirstMoveInterval;
  int move_timer_ = kFirstMoveInterval;
  int ramp_timer_ = kRampInterval;
  int ramps_ = 0;
};

}  // namespace uper::minatar
