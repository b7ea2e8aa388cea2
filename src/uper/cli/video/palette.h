#pragma once

#include "uper/cli/video/canvas.h"

namespace uper::cli {

// The colors of films: the same as those of the figures in python/uper_plots.
inline constexpr Color kBlue = {0x1f, 0x77, 0xb4};
inline constexpr Color kGreen = {0x2c, 0xa0, 0x2c};
inline constexpr Color kRed = {0xd6, 0x27, 0x28};
inline constexpr Color kGray = {0x7f, 0x7f, 0x7f};
inline constexpr Color kLightGray = {0xe6, 0xe6, 0xe6};
inline constexpr Color kBlack = {0x22, 0x22, 0x22};
inline constexpr Color kWhite = {255, 255, 255};

}  // namespace uper::cli
