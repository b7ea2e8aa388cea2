#include "uper/envs/atari/frame_processor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "uper/base/random.h"

namespace uper::atari {
namespace {

using Screen = std::vector<std::uint8_t>;

Palette SomePalette() {
  Palette palette;
  RandomStream stream(1, "palette");
  for (int i = 0; i < 128; ++i) {
    for (auto& part : palette.rgb[i]) part = static_cast<std::uint8_t>(stream.UniformInt(256));
    palette.gray[i] = static_cast<std::uint8_t>(stream.UniformInt(256));
  }
  return palette;
}

// Random pixels in blocks, so that rows and neighbors repeat, as on the console.
Screen SomeScreen(const FrameProcessorOptions& options, std::uint64_t seed) {
  RandomStream stream(seed, "screen");
  Screen screen;
  for (int y = 0; y < options.height; ++y) {
    const bool repeats = y > 0 && stream.Bernoulli(0.6);
    for (int x = 0; x < options.width; ++x) {
      const bool same = x > 0 && stream.Bernoulli(0.5);
      const auto pixel = static_cast<std::uint8_t>(2 * stream.UniformInt(128));
      screen.push_back(repeats ? screen[screen.size() - options.width]
                               : (same ? screen.back() : pixel));
    }
  }
  return screen;
}

// The reference without tiles, turned rows or lanes; it resizes across first.
std::vector<std::byte> Naive(const FrameProcessorOptions& options, const ScreenTable& table,
                             const Screen& one, const Screen& other) {
  const bool bilinear = options.resize == ResizeRule::kBilinear;
  std::vector<std::byte> out;
  const auto gray = [&](int y, int x) {
    const std::size_t at = std::size_t{1} * y * options.width + x;
    return table[one[at] / 2][other[at] / 2];
  };
  const Taps<int> across = BilinearTaps(options.width, options.size);
  const Taps<int> down = BilinearTaps(options.height, options.size);
  const Taps<float> across_area = AreaTaps(options.width, options.size);
  const Taps<float> down_area = AreaTaps(options.height, options.size);
  for (int y = 0; y < options.size; ++y) {
    for (int x = 0; x < options.size; ++x) {
      std::int64_t sum = 1 << (kBilinearBits - 1);
      float area = 0;
      for (int v = 0; v < (bilinear ? down.width : down_area.width); ++v) {
        std::int64_t row_sum = 1 << (kBilinearBits - 1);
        float row_area = 0;
        for (int h = 0; h < (bilinear ? across.width : across_area.width); ++h) {
          if (bilinear) {
            row_sum += std::int64_t{across.weights[x * across.width + h]} *
                       gray(down.first[y] + v, across.first[x] + h);
          } else {
            row_area += static_cast<float>(gray(down_area.first[y] + v, across_area.first[x] + h)) *
                        across_area.weights[x * across_area.width + h];
          }
        }
        if (bilinear) {
          sum += down.weights[y * down.width + v] * (row_sum >> kBilinearBits);
        } else {
          area += down_area.weights[y * down_area.width + v] * row_area;
        }
      }
      out.push_back(static_cast<std::byte>(bilinear ? sum >> kBilinearBits : std::lrint(area)));
    }
  }
  return out;
}

// The same as a bilinear Naive(), down first.
std::vector<std::byte> NaiveDownFirst(const FrameProcessorOptions& options,
                                      const ScreenTable& table, const Screen& one,
                                      const Screen& other) {
  const Taps<int> across = BilinearTaps(options.width, options.size);
  const Taps<int> down = BilinearTaps(options.height, options.size);
  std::vector<std::byte> out;
  for (int y = 0; y < options.size; ++y) {
    std::vector<std::int64_t> line;
    for (int x = 0; x < options.width; ++x) {
      std::int64_t sum = 1 << (kBilinearBits - 1);
      for (int v = 0; v < down.width; ++v) {
        const std::size_t at = std::size_t{1} * (down.first[y] + v) * options.width + x;
        sum += std::int64_t{down.weights[y * down.width + v]} * table[one[at] / 2][other[at] / 2];
      }
      line.push_back(sum >> kBilinearBits);
    }
    for (int x = 0; x < options.size; ++x) {
      std::int64_t sum = 1 << (kBilinearBits - 1);
      for (int h = 0; h < across.width; ++h) {
        sum += across.weights[x * across.width + h] * line[across.first[x] + h];
      }
      out.push_back(static_cast<std::byte>(sum >> kBilinearBits));
    }
  }
  return out;
}

TEST(FrameProcessorTest, SameAsTheNaiveModel) {
  const Palette palette = SomePalette();
  for (const ResizeRule rule : {ResizeRule::kBilinear, ResizeRule::kArea}) {
    for (const int size : {84, 64, 97}) {
      const FrameProcessorOptions options = {.size = size, .resize = rule};
      const ScreenTable table =
          rule == ResizeRule::kBilinear ? LumaOfMaximum(palette) : MaximumOfGray(palette);
      FrameProcessor processor(options, table);
      for (std::uint64_t seed = 0; seed < 4; ++seed) {  // on one processor: no state remains
        const Screen one = SomeScreen(options, seed);
        const Screen other = SomeScreen(options, seed + 100);
        std::vector<std::byte> out(std::size_t{1} * size * size);
        processor.Process(one, other, out);
        EXPECT_EQ(out, Naive(options, table, one, other)) << size << " " << seed;
      }
    }
  }
}

// The sizes at which Pillow 13.0.0 changes the order of its passes. tests/test_atari_oracle.py
// compares with Pillow.
TEST(FrameProcessorTest, BilinearPassesInPillowsOrder) {
  struct Case {
    int height, size;
    bool down_first;
  };
  const ScreenTable table = LumaOfMaximum(SomePalette());
  for (const auto& [height, size, down_first] : {Case{210, 16, false},
                                                 {210, 84, false},
                                                 {210, 110, false},
                                                 {210, 111, true},
                                                 {210, 128, true},
                                                 {210, 159, true},
                                                 {250, 70, false},
                                                 {250, 71, true}}) {
    const FrameProcessorOptions options = {.height = height, .size = size};
    FrameProcessor processor(options, table);
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
      const Screen one = SomeScreen(options, seed);
      const Screen other = SomeScreen(options, seed + 100);
      std::vector<std::byte> out(std::size_t{1} * size * size);
      processor.Process(one, other, out);
      EXPECT_EQ(out == Naive(options, table, one, other), !down_first) << height << " " << size;
      EXPECT_EQ(out == NaiveDownFirst(options, table, one, other), down_first)
          << height << " " << size;
    }
  }
}

TEST(FrameProcessorTest, EmptyScreenIsOneColor) {
  const Palette palette = SomePalette();
  for (const ResizeRule rule : {ResizeRule::kBilinear, ResizeRule::kArea}) {
    FrameProcessor processor({.resize = rule}, MaximumOfGray(palette));
    const Screen screen(std::size_t{210} * 160, 2 * 17);
    std::vector<std::byte> out(std::size_t{84} * 84);
    processor.Process(screen, screen, out);
    EXPECT_EQ(std::count(out.begin(), out.end(), std::byte{palette.gray[17]}), 84 * 84);
  }
}

TEST(ScreenTableTest, LumaByHand) {
  Palette palette{};
  palette.rgb[1] = {200, 10, 30};
  palette.rgb[2] = {20, 100, 90};
  const ScreenTable table = LumaOfMaximum(palette);
  // 0.299 * 200 + 0.587 * 10 + 0.114 * 30 = 69.09; 0.299 * 20 + 58.7 + 10.26 = 74.94.
  EXPECT_EQ(table[1][1], 69);
  EXPECT_EQ(table[2][2], 74);
  // The maximum of each color: 59.8 + 58.7 + 10.26 = 128.76, more than of either.
  EXPECT_EQ(table[1][2], 128);
  EXPECT_EQ(table[2][1], 128);
  EXPECT_EQ(table[0][1], 69);
}

TEST(ScreenTableTest, GrayByHand) {
  Palette palette{};
  palette.gray[1] = 40;
  palette.gray[2] = 70;
  const ScreenTable table = MaximumOfGray(palette);
  EXPECT_EQ(table[1][2], 70);
  EXPECT_EQ(table[2][1], 70);
  EXPECT_EQ(table[1][1], 40);
}

}  // namespace
}  // namespace uper::atari
