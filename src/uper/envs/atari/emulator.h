#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "uper/base/files/byte_stream.h"

namespace uper::atari {

// Colors by pixel value. Pixels are even numbers 0, 2, ..., 254; pixel p has entry p / 2.
struct Palette {
  std::array<std::array<std::uint8_t, 3>, 128> rgb;
  std::array<std::uint8_t, 128> gray;  // the emulator's own luma, rounded
};

// The console with one cartridge, frame by frame: the interface between the protocols and the
// emulator. Nothing here is random. Not thread-safe; consoles share nothing.
class Emulator {
 public:
  virtual ~Emulator() = default;

  // Constant after construction. The screen is [height, width]; actions are the console's codes
  // (0: nothing is pressed).
  virtual int height() const = 0;
  virtual int width() const = 0;
  virtual const Palette& palette() const = 0;
  virtual const std::vector<int>& actions() const = 0;

  // Starts a game.
  virtual void Reset() = 0;
  // Starts a game and plays `frames` idle frames; a game that ends in one of them starts again.
  virtual void ResetAndIdle(int frames) {
    Reset();
    for (int i = 0; i < frames; ++i) Idle();
  }
  // Plays one frame; returns its reward.
  virtual int Act(int action) = 0;
  virtual int lives() const = 0;
  virtual bool game_over() const = 0;
  // The picture of the last frame, valid until the next call that changes something.
  virtual std::span<const std::uint8_t> screen() const = 0;
  // True if the screen stays valid while the next frame is played.
  virtual bool screen_stays() const { return false; }

  // The state that decides future frames, bit for bit, also in another process.
  virtual void Save(ByteWriter& writer) const = 0;
  // Throws Error(kCorrupt) if the state is not of this cartridge or does not match its checksum.
  virtual void Restore(ByteReader& reader) = 0;

 protected:
  void Idle() {
    Act(0);
    if (game_over()) Reset();
  }
};

struct EmulatorOptions {
  std::filesystem::path rom;  // checked before (rom_file.h)
  bool full_action_set = false;
  int mode = -1;        // -1: the game's default
  int difficulty = -1;  // -1: the game's default
  // If true, every game starts from the state after the first reset, and idle frames are played
  // only once.
  bool cached_reset = true;
  bool ale_copies = false;  // also makes ALE's own copy of each screen, which we never read
};

// True if this program was built with the emulator.
bool EmulatorAvailable();
// "ALE 0.12.1", or the reason why there is no emulator.
std::string EmulatorDescription();

// Throws Error(kUsage) for a mode or difficulty the game does not have, Error(kMissingData) when
// the program was built without the emulator.
std::unique_ptr<Emulator> MakeEmulator(const EmulatorOptions& options);

}  // namespace uper::atari
