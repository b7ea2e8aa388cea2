#include "uper/cli/video/canvas.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "uper/cli/video/palette.h"

namespace uper::cli {
namespace {

constexpr Color kInk = {5, 105, 205};

// One character per pixel: '#' full ink, '.' white, '+' in between.
std::string Seen(const Canvas& canvas, int y) {
  std::string row;
  for (int x = 0; x < canvas.width(); ++x) {
    const Color color = canvas.at(x, y);
    row += color == kInk ? '#' : color == kWhite ? '.' : '+';
  }
  return row;
}

std::vector<std::string> Seen(const Canvas& canvas) {
  std::vector<std::string> rows;
  for (int y = 0; y < canvas.height(); ++y) rows.push_back(Seen(canvas, y));
  return rows;
}

using Rows = std::vector<std::string>;

TEST(CanvasTest, RectanglesAreClippedAndMixed) {
  Canvas canvas(4, 3);
  canvas.FillRect(2, 1, 10, 1, kInk);
  canvas.FillRect(-5, -5, 6, 6, kInk);
  EXPECT_EQ(Seen(canvas), (Rows{"#...", "..##", "...."}));
  canvas.FillRect(0, 2, 1, 1, kInk, 0.5);
  EXPECT_EQ(canvas.at(0, 2), (Color{130, 180, 230}));
  canvas.Fill(kWhite);
  EXPECT_EQ(Seen(canvas), (Rows{"....", "....", "...."}));
  EXPECT_THROW(canvas.at(4, 0), std::exception);
}

TEST(CanvasTest, LinesCoverPixelsByTheirWidth) {
  Canvas canvas(6, 4);
  canvas.Line({1, 1}, {4, 1}, {.color = kInk});
  EXPECT_EQ(Seen(canvas), (Rows{"......", ".###..", "......", "......"})) << "its end is left out";
  canvas.Fill(kWhite);
  canvas.Line({1, 1.5}, {4, 1.5}, {.color = kInk});
  EXPECT_EQ(canvas.at(2, 1), (Color{130, 180, 230})) << "half on each of two rows";
  EXPECT_EQ(canvas.at(2, 2), canvas.at(2, 1));
  canvas.Fill(kWhite);
  canvas.Line({3, 3}, {3, 0}, {.color = kInk, .thickness = 3});
  EXPECT_EQ(Seen(canvas), (Rows{"......", "..###.", "..###.", "..###."})) << "upwards";
}

TEST(CanvasTest, LinesThatFollowEachOtherPaintTheirCommonPointOnce) {
  Canvas canvas(6, 1);
  const Canvas::Pen pen{.color = kInk, .opacity = 0.5};
  canvas.Line({0, 0}, {2, 0}, pen);
  canvas.Line({2, 0}, {5, 0}, pen);
  for (int x = 0; x < 5; ++x) EXPECT_EQ(canvas.at(x, 0), (Color{130, 180, 230})) << x;
  EXPECT_EQ(canvas.at(5, 0), kWhite);
}

TEST(CanvasTest, LinesMayLieOutsideOrBeNoNumbers) {
  Canvas canvas(3, 2);
  canvas.Line({-1e12, 5e11}, {1e12, 5e11}, {.color = kInk});
  canvas.Line({0, std::numeric_limits<double>::quiet_NaN()}, {3, 0}, {.color = kInk});
  canvas.Line({0, 0}, {std::numeric_limits<double>::infinity(), 0}, {.color = kInk});
  canvas.Line({1, 1}, {1, 1}, {.color = kInk});
  EXPECT_EQ(Seen(canvas), (Rows{"...", "..."}));
  canvas.Line({-1e9, 1}, {1e9, 1}, {.color = kInk});
  EXPECT_EQ(Seen(canvas), (Rows{"...", "###"}));
}

TEST(CanvasTest, TextIsMadeOfDots) {
  Canvas canvas(12, 9);
  canvas.Text(0, 0, "Lg", kInk, 1);
  EXPECT_EQ(Seen(canvas),
            (Rows{"#...........", "#...........", "#......####.", "#.....#...#.", "#.....#...#.",
                  "#.....#...#.", "#####..####.", "..........#.", ".......###.."}));
  EXPECT_EQ(Canvas::TextWidth("Lg", 1), 11);
  EXPECT_EQ(Canvas::TextWidth("Lg"), 22);
  EXPECT_EQ(Canvas::TextWidth(""), 0);
}

TEST(CanvasTest, UnknownLettersAreQuestionMarks) {
  Canvas unknown(6, 9), question(6, 9);
  unknown.Text(0, 0, "\xc3", kInk, 1);
  question.Text(0, 0, "?", kInk, 1);
  EXPECT_EQ(Seen(unknown), Seen(question));
  EXPECT_NE(Seen(unknown), Seen(Canvas(6, 9)));
}

TEST(CanvasTest, PicturesAreEnlargedBySquares) {
  Canvas canvas(7, 3);
  const Picture picture{.height = 1, .width = 2, .rgb = {5, 105, 205, 9, 9, 9}};
  canvas.DrawPicture(picture, 1, 1, 2);
  EXPECT_EQ(Seen(canvas), (Rows{".......", ".##++..", ".##++.."}));
  EXPECT_EQ(canvas.at(4, 2), (Color{9, 9, 9}));
}

}  // namespace
}  // namespace uper::cli
