#pragma once

#include <cstdint>

#include "uper/base/files/byte_stream.h"
#include "uper/base/random.h"

namespace uper {

// The purpose of a draw. Every draw names its purpose, so that a test can choose results by
// purpose, in any order of draws.
enum class DrawPurpose : std::uint8_t {
  kRepeatAction,   // chance: the sticky action
  kBallSide,       // of 2, breakout: the ball starts at the left (0) or right (1) wall
  kCarSpeed,       // of 5, freeway: steps between a car's moves, less one
  kCarGoesLeft,    // chance, freeway
  kVisitorRight,   // chance, asterix: the newcomer starts at the left wall and goes right
  kVisitorIsGold,  // chance, asterix
  kVisitorLane,    // of the empty lanes, asterix
  kEnemyRight,     // chance, seaquest: as kVisitorRight
  kEnemyIsSub,     // chance, seaquest
  kEnemyRow,       // of 8, seaquest: row less one
  kDiverRight,     // chance, seaquest
  kDiverRow,       // of 8, seaquest
};
inline constexpr int kPurposeCount = 12;

// The source of all random decisions of a game. Not thread-safe.
class GameRandom {
 public:
  virtual ~GameRandom() = default;

  // True with the given probability.
  virtual bool Chance(DrawPurpose purpose, double probability) = 0;
  // Uniform in {0, ..., bound - 1}. REQUIRES: bound > 0.
  virtual int Below(DrawPurpose purpose, int bound) = 0;

  virtual void Save(ByteWriter& writer) const = 0;
  virtual void Restore(ByteReader& reader) = 0;
};

// The source that games use: all purposes draw from one stream.
class StreamGameRandom final : public GameRandom {
 public:
  explicit StreamGameRandom(const RandomStream& stream) : stream_(stream) {}

  bool Chance(DrawPurpose, double probability) override { return stream_.Bernoulli(probability); }
  int Below(DrawPurpose, int bound) override;
  void Save(ByteWriter& writer) const override { writer.Write(stream_.position()); }
  void Restore(ByteReader& reader) override { stream_.set_position(reader.Read<std::uint64_t>()); }

 private:
  RandomStream stream_;
};

}  // namespace uper
