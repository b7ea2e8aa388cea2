#pragma once

#include "uper/envs/minatar/bit_board.h"
#include "uper/envs/minatar/minatar_game.h"

namespace uper::minatar {

// A cannon in the bottom row shoots at four rows of six aliens. These move to the side together
// and, at a wall, one row down and back; the fewer there are, the sooner they move again. The alien
// nearest to the cannon shoots every ten steps. Each alien shot pays 1; when all are gone the next
// wave appears, with ramping one step faster (from 12 steps between moves to 6). The game is over
// when a shot or an alien reaches the cannon, or an alien gets below the bottom row.
class SpaceInvaders final : public MinAtarGame {
 public:
  enum Channel {
    kCannon,
    kAlien,
    kAlienLeft,   // the aliens again, while they go left
    kAlienRight,  // ... right
    kFriendlyBullet,
    kEnemyBullet,
    kChannels
  };

  explicit SpaceInvaders(bool ramping) : ramping_(ramping) {}

  int channels() const override { return kChannels; }
  std::span<const GameAction> minimal_actions() const override;
  void Start(GameRandom& random) override;
  GameStep Act(GameAction action, GameRandom& random) override;
  void Draw(Frame& frame) const override;
  void Save(ByteWriter& writer) const override;
  void Restore(ByteReader& reader) override;

 private:
  static constexpr int kReloadInterval = 5;
  static constexpr int kAlienShotInterval = 10;
  static constexpr int kFirstMoveInterval = 12;
  static constexpr int kLastMoveInterval = 6;

  void MoveCannon(GameAction action);
  void MarchAliens(GameStep& step);
  void ShootBack();
  void HitAliens(GameStep& step);
  void NextWave();
  bool AlienAtCannon() const { return aliens_.Has(kLastCell, cannon_); }

  template <typename Archive, typename Game>
  static void VisitState(Archive& archive, Game& game);

  // Constant after construction.
  const bool ramping_;

  int cannon_ = 5;  // column
  BitBoard aliens_;
  BitBoard friendly_bullets_;
  BitBoard enemy_bullets_;
  bool aliens_go_left_ = true;
  int move_interval_ = kFirstMoveInterval;  // of a full wave
  int move_timer_ = kFirstMoveInterval;
  int alien_shot_timer_ = kAlienShotInterval;
  int reload_timer_ = 0;
};

}  // namespace uper::minatar
