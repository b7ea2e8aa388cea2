#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "uper/envs/environment.h"

namespace uper::cli {

struct Color {
  std::uint8_t r = 0;
  std::uint8_t g = 0;
  std::uint8_t b = 0;

  bool operator==(const Color&) const = default;
};

// Gives a for share 0 and b for share 1.
Color Mix(Color a, Color b, double share);

// A picture to draw on. x points right and y down; whole numbers are centers of pixels. Parts
// outside the canvas are clipped. Opacity is from 0 to 1. Not thread-safe.
class Canvas {
 public:
  // The canvas starts white.
  Canvas(int width, int height);

  int width() const { return width_; }
  int height() const { return height_; }
  std::span<const std::uint8_t> rgb() const { return rgb_; }  // [height, width, 3]
  Color at(int x, int y) const;

  void Fill(Color color);
  void FillRect(int x, int y, int width, int height, Color color, double opacity = 1);
  // Draws a line with smooth edges. It omits the last point, so that lines that follow each other
  // paint their common point once. Draws nothing if a number is not finite.
  struct Point {
    double x = 0;
    double y = 0;
  };
  struct Pen {
    Color color;
    double thickness = 1;
    double opacity = 1;
  };
  void Line(Point from, Point to, const Pen& pen);
  // (x, y) is the upper left corner of the first letter. A letter has 5 x 7 dots of `scale` pixels,
  // and tails reach two dots lower. Characters other than printable ASCII become '?'.
  void Text(int x, int y, std::string_view text, Color color, int scale = 2);
  static int TextWidth(std::string_view text, int scale = 2);
  // Every pixel becomes a square of `scale` pixels.
  void DrawPicture(const Picture& picture, int x, int y, int scale);

 private:
  void Blend(int x, int y, Color color, double opacity);
  void Glyph(int x, int y, char letter, Color color, int scale);

  int width_, height_;
  std::vector<std::uint8_t> rgb_;
};

}  // namespace uper::cli
