#include "uper/envs/atari/rom_file.h"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "uper/base/error.h"
#include "uper/base/files/md5.h"

namespace uper::atari {
namespace {

// No cartridge of the 57 is larger than 16 KiB. Files above this limit are not read in full.
constexpr std::uintmax_t kMaxRomBytes = std::uintmax_t{1} << 26;

[[noreturn]] void Fail(const Game& game, const std::filesystem::path& path,
                       const std::string& what) {
  throw Error(ErrorKind::kMissingData,
              "the ROM of atari/" + std::string(game.name) + ", " + path.string() + ", " + what +
                  "; expected MD5 " + std::string(game.rom_md5) +
                  ". `make setup` installs the ROMs; environment.rom_dir names a folder of your "
                  "own");
}

std::vector<std::byte> ReadRom(const Game& game, const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) Fail(game, path, "is missing");
  if (!std::filesystem::is_regular_file(path, error)) Fail(game, path, "is not a file");
  std::ifstream file(path, std::ios::binary);
  std::error_code unknown;
  const std::uintmax_t size = std::filesystem::file_size(path, unknown);
  std::vector<std::byte> bytes(std::min(unknown ? std::uintmax_t{0} : size, kMaxRomBytes) + 1);
  file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  if (file.bad() || !file.is_open()) Fail(game, path, "cannot be read");
  bytes.resize(static_cast<std::size_t>(file.gcount()));
  if (bytes.size() > kMaxRomBytes) Fail(game, path, "is larger than any cartridge");
  return bytes;
}

}  // namespace

std::filesystem::path DefaultRomFolder() { return UPER_ATARI_ROM_DIR; }

std::filesystem::path CheckedRom(const std::filesystem::path& folder, const Game& game) {
  const std::filesystem::path path = folder / (std::string(game.name) + ".bin");
  const std::vector<std::byte> bytes = ReadRom(game, path);
  const std::string found = Md5Text(Md5(bytes));
  if (found != game.rom_md5) {
    Fail(game, path,
         (bytes.empty() ? "is empty"
                        : "is not the right one (" + std::to_string(bytes.size()) + " bytes)") +
             ": found MD5 " + found);
  }
  return path;
}

}  // namespace uper::atari
