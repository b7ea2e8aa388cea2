#pragma once

#include <array>
#include <string_view>

namespace uper::atari {

// One game of the benchmark.
struct Game {
  std::string_view name;     // "space_invaders"; the file is space_invaders.bin
  std::string_view rom_md5;  // of the cartridge that published results use
  int actions = 0;           // that the game uses, out of kAllActions
};

inline constexpr int kAllActions = 18;

// The 57 games of Atari-57, by name.
extern const std::array<Game, 57> kGames;

// Null when there is no such game.
const Game* FindGame(std::string_view name);

}  // namespace uper::atari
