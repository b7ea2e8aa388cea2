#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "uper/base/check.h"
#include "uper/base/files/byte_stream.h"
#include "uper/envs/minatar/game_random.h"

namespace uper::minatar {

// Every game is played on a board of 10 x 10 cells; row 0 is the top, column 0 the left.
inline constexpr int kBoardSize = 10;
inline constexpr int kLastCell = kBoardSize - 1;

enum class GameAction { kNoOp, kLeft, kUp, kRight, kDown, kFire };
inline constexpr int kActionCount = 6;

// The result of one action.
struct GameStep {
  int reward = 0;
  bool over = false;
};

// An observation being drawn: bytes 0 or 1 of shape [row, column, channel] in the caller's memory,
// cleared at construction.
class Frame {
 public:
  Frame(std::span<std::byte> cells, int channels) : cells_(cells), channels_(channels) {
    std::memset(cells.data(), 0, cells.size());
  }

  void Set(int row, int column, int channel) {
    UPER_DCHECK(0 <= row && row < kBoardSize && 0 <= column && column < kBoardSize &&
                    0 <= channel && channel < channels_,
                "outside the board");
    const int cell = (row * kBoardSize + column) * channels_ + channel;
    cells_[static_cast<std::size_t>(cell)] = std::byte{1};
  }
  // For trails: a trail beyond the side walls is not drawn.
  void SetIfInside(int row, int column, int channel) {
    if (0 <= column && column < kBoardSize) Set(row, column, channel);
  }

 private:
  std::span<std::byte> cells_;
  int channels_;
};

// The rules of one game (Young and Tian 2019, as played by their package, version 1.0.15).
// MinAtarEnvironment handles sticky actions, buffers and the order of calls. Not thread-safe.
class MinAtarGame {
 public:
  virtual ~MinAtarGame() = default;

  virtual int channels() const = 0;
  // The actions that do something in this game, kNoOp first.
  virtual std::span<const GameAction> minimal_actions() const = 0;

  // Sets up the start of an episode.
  virtual void Start(GameRandom& random) = 0;
  // REQUIRES: Start() was called and the game is not over.
  virtual GameStep Act(GameAction action, GameRandom& random) = 0;
  // REQUIRES: the frame is empty and has channels() channels.
  virtual void Draw(Frame& frame) const = 0;

  virtual void Save(ByteWriter& writer) const = 0;
  // Throws Error(kCorrupt) for values that cannot occur.
  virtual void Restore(ByteReader& reader) = 0;
};

// "asterix", "breakout", "freeway", "seaquest", "space_invaders".
const std::vector<std::string>& GameNames();
// REQUIRES: a name of the list. Ramping: the game becomes harder as it goes on (asterix, seaquest,
// space_invaders; the other two ignore it).
std::unique_ptr<MinAtarGame> MakeGame(std::string_view name, bool ramping);

}  // namespace uper::minatar
