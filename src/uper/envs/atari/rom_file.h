#pragma once

#include <filesystem>

#include "uper/envs/atari/games.h"

namespace uper::atari {

// The folder into which the set-up puts the games; it need not exist.
std::filesystem::path DefaultRomFolder();

// The path of a game's cartridge in the folder, after a check of its MD5 digest (the emulator ends
// the process on a bad file). Throws Error(kMissingData) with name, path, expected and found digest
// if the file is missing, empty, damaged or another one.
std::filesystem::path CheckedRom(const std::filesystem::path& folder, const Game& game);

}  // namespace uper::atari
