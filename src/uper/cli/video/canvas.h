#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "uper/envs/environment.h"

namespace uper {

struct Colour {
  std::uint8_t r = 0;
  std::uint8_t g = 0;
  std::uint8_t b = 0;

  bool operator==(const Colour&) const = default;
};

// a where share is 0, b where it is 1.
Colour Mix(Colour a, Colour b, double share);

// A picture to draw on: x to the right, y down, whole numbers are the centres of pixels. What lies
// outside is not drawn; opacity is from 0 to 1. Not thread-safe.
class Canvas {
 public:
  // White.
  Canvas(int width, int height);

  int width() const { return width_; }
  int height() const { return height_; }
  std::span<const std::uint8_t> rgb() const { return rgb_; }  // [height, width, 3]
  Colour at(int x, int y) const;

  void Fill(Colour colour);
  void FillRect(int x, int y, int width, int height, Colour colour, double opacity = 1);
  // With smooth edges. The last point is left out, so that lines that follow each other paint their
  // common point once. Nothing if a number is not finite.
  struct Point {
    double x = 0;
    double y = 0;
  };
  struct Pen {
    Colour colour;
    double thickness = 1;
    double opacity = 1;
  };
  void Line(Point from, Point to, const Pen& pen);
  // The upper left corner of the first letter. A letter is 5 x 7 dots, each `scale` pixels wide,
  // tails of letters reach two dots below; characters other than printable ASCII become '?'.
  void Text(int x, int y, std::string_view text, Colour colour, int scale = 2);
  static int TextWidth(std::string_view text, int scale = 2);
  // Every pixel becomes a square of `scale` pixels.
  void DrawPicture(const Picture& picture, int x, int y, int scale);

 private:
  void Blend(int x, int y, Colour colour, double opacity);
  void Glyph(int x, int y, char letter, Colour colour, int scale);

  int width_, height_;
  std::vector<std::uint8_t> rgb_;
};

}  // namespace uper
