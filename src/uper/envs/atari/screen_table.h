#pragma once

#include <array>
#include <cstdint>

#include "uper/envs/atari/emulator.h"

namespace uper::atari {

// The gray value of two pixels at the same place of two frames: [pixel / 2 of one, pixel / 2 of the
// other]. Symmetric; the diagonal is a single frame.
using ScreenTable = std::array<std::array<std::uint8_t, 128>, 128>;

// dqn-zoo: the maximum of each color, then 0.299 R + 0.587 G + (1 - (0.299 + 0.587)) B in double,
// cut off.
ScreenTable LumaOfMaximum(const Palette& palette);

// dopamine: the maximum of the emulator's own gray values.
ScreenTable MaximumOfGray(const Palette& palette);

}  // namespace uper::atari
