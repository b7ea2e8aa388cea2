#pragma once

#include "uper/envs/minatar/game_state.h"
#include "uper/envs/minatar/minatar_game.h"

namespace uper::minatar {

// The player's submarine moves in rows 0 (the surface) to 8, looks left or right and fires
// torpedoes that way, one in five steps. Fish and enemy submarines cross the sea from wall to wall.
// One enemy in three is a submarine, which shoots every eleven steps. Each enemy that is hit pays
// 1. To touch an enemy or its shot ends the game. Divers cross it, too, and are taken on board when
// touched, six at most. Oxygen lasts for 200 steps below the surface; without it the game is over.
// Surfacing needs a diver, which leaves. With six divers all leave, and every tenth of the oxygen
// left pays 1. Ramping: at each surfacing enemies come one step sooner (20 to 1) and, every second
// time, move one step sooner (5 to 2). Trails show where fish, submarines and divers come from.
//
// We keep a peculiarity of the original, because it affects returns: surfacing with six divers
// leaves -1 of them, and only 0 divers make surfacing deadly. With -1 divers surfacing is free.
class Seaquest final : public MinAtarGame {
 public:
  enum Channel {
    kSubFront,
    kSubBack,
    kFriendlyBullet,
    kTrail,
    kEnemyBullet,
    kEnemyFish,
    kEnemySub,
    kOxygenGauge,
    kDiverGauge,
    kDiver,
    kChannels
  };

  explicit Seaquest(bool ramping) : ramping_(ramping) {}

  int channels() const override { return kChannels; }
  std::span<const GameAction> minimal_actions() const override;
  void Start(GameRandom& random) override;
  GameStep Act(GameAction action, GameRandom& random) override;
  void Draw(Frame& frame) const override;
  void Save(ByteWriter& writer) const override;
  void Restore(ByteReader& reader) override;

 private:
  static constexpr int kFullOxygen = 200;
  static constexpr int kFullBoat = 6;  // divers
  static constexpr int kDeepestRow = 8;
  static constexpr int kReloadInterval = 5;
  static constexpr int kEnemyShotInterval = 10;
  static constexpr int kDiverSpawnInterval = 30;
  static constexpr int kDiverMoveInterval = 5;
  static constexpr int kFirstSpawnInterval = 20;
  static constexpr int kFirstMoveInterval = 5;
  static constexpr int kLastMoveInterval = 2;
  // At spawn interval 1 and move interval 2 an enemy crosses the sea in 30 steps: 31 at once.
  static constexpr int kMaxSwimmers = 64;

  struct Bullet {
    int row = 0;
    int column = 0;
    bool right = false;
  };
  struct Swimmer {
    int row = 0;
    int column = 0;
    bool right = false;
    int move_timer = 0;
    int shot_timer = 0;  // enemy submarines only
  };
  using Bullets = SmallList<Bullet, kMaxSwimmers>;
  using Swimmers = SmallList<Swimmer, kMaxSwimmers>;
  struct Moved {
    Swimmer enemy;  // as it is after its move
    bool gone = false;
  };

  void SpawnWhenDue(GameRandom& random);
  void SpawnEnemy(GameRandom& random);
  void SpawnDiver(GameRandom& random);
  void MovePlayer(GameAction action);
  void MoveTorpedoes(GameStep& step);
  void MoveDivers();
  bool TakeOnBoard(int diver);
  Moved MoveEnemy(Swimmers& enemies, int index, GameStep& step);
  void MoveEnemySubs(GameStep& step);
  void MoveEnemyBullets(GameStep& step);
  void MoveFish(GameStep& step);
  void TickTimers();
  void Breathe(GameStep& step);
  int Surface();
  void Ramp();

  template <typename Entity>
  bool AtPlayer(const Entity& entity) const {
    return entity.row == row_ && entity.column == column_;
  }

  template <typename Archive, typename Game>
  static void VisitState(Archive& archive, Game& game);

  // Constant after construction.
  const bool ramping_;

  int row_ = 0;
  int column_ = 5;
  bool looks_right_ = false;
  int oxygen_ = kFullOxygen;
  int divers_on_board_ = 0;  // below 0: see above
  bool surfaced_ = true;     // since it was last below the surface
  Bullets torpedoes_;
  Bullets enemy_bullets_;
  Swimmers fish_;
  Swimmers enemy_subs_;
  Swimmers divers_;
  int spawn_interval_ = kFirstSpawnInterval;
  int spawn_timer_ = kFirstSpawnInterval;
  int diver_spawn_timer_ = kDiverSpawnInterval;
  int move_interval_ = kFirstMoveInterval;  // of enemies: they move every move_interval + 1 steps
  int reload_timer_ = 0;
  int ramps_ = 0;
};

}  // namespace uper::minatar
