#include "uper/cli/video/canvas.h"

#include <algorithm>
#include <cmath>

#include "uper/base/check.h"
#include "uper/cli/video/canvas_font.h"
#include "uper/cli/video/palette.h"

namespace uper::cli {
namespace {

constexpr int kGlyphStep = kGlyphWidth + 1;  // dots from one letter to the next

std::uint8_t MixChannel(std::uint8_t a, std::uint8_t b, double share) {
  return static_cast<std::uint8_t>(std::lround(a + (b - a) * share));
}

// How much of pixel `i`, from i - 1/2 to i + 1/2, lies in [low, high].
double Coverage(int i, double low, double high) {
  return std::clamp(std::min(i + 0.5, high) - std::max(i - 0.5, low), 0.0, 1.0);
}

}  // namespace

Color Mix(Color a, Color b, double share) {
  return {MixChannel(a.r, b.r, share), MixChannel(a.g, b.g, share), MixChannel(a.b, b.b, share)};
}

Canvas::Canvas(int width, int height)
    : width_(width), height_(height), rgb_(std::size_t{3} * width * height) {
  Fill(kWhite);
}

Color Canvas::at(int x, int y) const {
  UPER_CHECK(0 <= x && x < width_ && 0 <= y && y < height_, "outside the canvas");
  const std::uint8_t* pixel = &rgb_[3 * (std::size_t{1} * y * width_ + x)];
  return {pixel[0], pixel[1], pixel[2]};
}

void Canvas::Blend(int x, int y, Color color, double opacity) {
  if (x < 0 || x >= width_ || y < 0 || y >= height_) return;
  std::uint8_t* pixel = &rgb_[3 * (std::size_t{1} * y * width_ + x)];
  const Color mixed = opacity == 1 ? color : Mix({pixel[0], pixel[1], pixel[2]}, color, opacity);
  pixel[0] = mixed.r;
  pixel[1] = mixed.g;
  pixel[2] = mixed.b;
}

void Canvas::Fill(Color color) { FillRect(0, 0, width_, height_, color); }

void Canvas::FillRect(int x, int y, int width, int height, Color color, double opacity) {
  for (int row = std::max(y, 0); row < std::min(y + height, height_); ++row) {
    for (int column = std::max(x, 0); column < std::min(x + width, width_); ++column) {
      Blend(column, row, color, opacity);
    }
  }
}

// Walks pixel by pixel along the longer direction. At each step the line covers a range of pixels
// in the other direction.
void Canvas::Line(Point from, Point to, const Pen& pen) {
  if (!std::isfinite(from.x + from.y + to.x + to.y)) return;
  const bool steep = std::abs(to.y - from.y) > std::abs(to.x - from.x);
  if (steep) {
    std::swap(from.x, from.y);
    std::swap(to.x, to.y);
  }
  const int limit = steep ? height_ : width_;
  const double edge = steep ? width_ : height_;  // size in the other direction
  const double length = to.x - from.x;
  if (length == 0) return;
  const double slope = (to.y - from.y) / length;
  const double half = 0.5 * pen.thickness * std::sqrt(1 + slope * slope);
  // Covers ceil(from) to the pixel before ceil(to), or the mirror image for a line to the left.
  const double begin = length > 0 ? std::ceil(from.x) : std::floor(to.x) + 1;
  const double end = length > 0 ? std::ceil(to.x) : std::floor(from.x) + 1;
  const int last = static_cast<int>(std::min<double>(end, limit));
  for (int along = static_cast<int>(std::max(begin, 0.0)); along < last; ++along) {
    const double center = from.y + slope * (along - from.x);
    const double low = std::clamp(center - half, -1.0, edge);
    const double high = std::clamp(center + half, -1.0, edge);
    for (int across = static_cast<int>(std::floor(low)); across < high + 0.5; ++across) {
      const double opacity = pen.opacity * Coverage(across, low, high);
      if (opacity > 0) Blend(steep ? across : along, steep ? along : across, pen.color, opacity);
    }
  }
}

void Canvas::Text(int x, int y, std::string_view text, Color color, int scale) {
  for (const char letter : text) {
    Glyph(x, y, letter, color, scale);
    x += kGlyphStep * scale;
  }
}

int Canvas::TextWidth(std::string_view text, int scale) {
  return text.empty() ? 0 : (kGlyphStep * static_cast<int>(text.size()) - 1) * scale;
}

void Canvas::Glyph(int x, int y, char letter, Color color, int scale) {
  const int index = letter - kFirstGlyph;
  const bool known = 0 <= index && index < static_cast<int>(kGlyphs.size());
  const GlyphRows& rows = kGlyphs[known ? index : '?' - kFirstGlyph];
  for (int row = 0; row < kGlyphRows; ++row) {
    for (int column = 0; column < kGlyphWidth; ++column) {
      if ((rows[row] >> (kGlyphWidth - 1 - column) & 1) == 0) continue;
      FillRect(x + column * scale, y + row * scale, scale, scale, color);
    }
  }
}

void Canvas::DrawPicture(const Picture& picture, int x, int y, int scale) {
  const std::uint8_t* pixel = picture.rgb.data();
  for (int row = 0; row < picture.height; ++row) {
    for (int column = 0; column < picture.width; ++column, pixel += 3) {
      FillRect(x + column * scale, y + row * scale, scale, scale, {pixel[0], pixel[1], pixel[2]});
    }
  }
}

}  // namespace uper::cli
