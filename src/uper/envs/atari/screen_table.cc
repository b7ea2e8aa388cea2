#include "uper/envs/atari/screen_table.h"

#include <algorithm>

namespace uper::atari {
namespace {

template <typename Gray>
ScreenTable MakeTable(const Gray& gray) {
  ScreenTable table;
  for (std::size_t a = 0; a < table.size(); ++a) {
    for (std::size_t b = 0; b < table.size(); ++b) table[a][b] = gray(a, b);
  }
  return table;
}

}  // namespace

ScreenTable LumaOfMaximum(const Palette& palette) {
  constexpr double kRed = 0.299;
  constexpr double kGreen = 0.587;
  constexpr double kBlue = 1 - (0.299 + 0.587);
  return MakeTable([&](std::size_t a, std::size_t b) {
    const auto& x = palette.rgb[a];
    const auto& y = palette.rgb[b];
    const double luma =
        kRed * std::max(x[0], y[0]) + kGreen * std::max(x[1], y[1]) + kBlue * std::max(x[2], y[2]);
    return static_cast<std::uint8_t>(luma);
  });
}

ScreenTable MaximumOfGray(const Palette& palette) {
  return MakeTable(
      [&](std::size_t a, std::size_t b) { return std::max(palette.gray[a], palette.gray[b]); });
}

}  // namespace uper::atari
