// Takes the place of ale_emulator.cc in a build without the emulator.
#include "uper/base/error.h"
#include "uper/envs/atari/emulator.h"

namespace uper::atari {

bool EmulatorAvailable() { return false; }

std::string EmulatorDescription() { return "not in this build (`make build` adds it)"; }

std::unique_ptr<Emulator> MakeEmulator(const EmulatorOptions&) {
  throw Error(ErrorKind::kMissingData,
              "Atari games are not in this build: `make build` installs the emulator");
}

}  // namespace uper::atari
