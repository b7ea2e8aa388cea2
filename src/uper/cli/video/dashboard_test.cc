#include "uper/cli/video/dashboard.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "uper/cli/video/palette.h"
#include "uper/cli/video/recording.h"

namespace uper::cli {
namespace {

// Whether the text appears somewhere on a white part of the picture.
bool Shows(const Canvas& canvas, const std::string& text, Color color) {
  Canvas wanted(Canvas::TextWidth(text), 14);
  wanted.Text(0, 0, text, color);
  const auto found = [&](int left, int top) {
    for (int y = 0; y < wanted.height(); ++y) {
      for (int x = 0; x < wanted.width(); ++x) {
        if (!(wanted.at(x, y) == canvas.at(left + x, top + y))) return false;
      }
    }
    return true;
  };
  for (int y = 0; y + wanted.height() <= canvas.height(); ++y) {
    for (int x = 0; x + wanted.width() <= canvas.width(); ++x) {
      if (found(x, y)) return true;
    }
  }
  return false;
}

LearnerSpec SpecOf(HeadKind head, int members, int outputs) {
  LearnerSpec spec{.network =
                       MlpNetwork(3, {8}, {.actions = 2, .members = members, .outputs = outputs})};
  spec.loss.head = head;
  return spec;
}

const Picture kGame{.height = 1, .width = 2, .rgb = {10, 20, 30, 40, 50, 60}};
const DashboardOptions kOptions{.title = "game", .subtitle = "agent", .window_steps = 5};

TEST(DashboardTest, ShowsGameDecisionAndUncertainty) {
  const LearnerSpec spec = SpecOf(HeadKind::kQuantile, 2, 2);
  const Decision decision =
      DescribeDecision(spec, std::vector<float>{0, 0, 0, 2, 1, 3, 2, 6}, 1, 0.25);
  Dashboard dashboard(spec, kOptions);
  const Canvas& canvas = dashboard.Draw(
      {.game = kGame, .decision = decision, .episode = 2, .step = 17, .episode_return = -3.5});
  EXPECT_TRUE(Shows(canvas, "episode 3  step 17  return -3.5", kBlack));
  EXPECT_FALSE(Shows(canvas, "end of", kBlack));
  EXPECT_TRUE(Shows(canvas, "spread of 2 members", kBlack));
  EXPECT_TRUE(Shows(canvas, "Return after action 1", kBlack));
  EXPECT_TRUE(Shows(canvas, "Q 3", kBlack));
  EXPECT_TRUE(Shows(canvas, "1.25", kBlue)) << "E";
  EXPECT_TRUE(Shows(canvas, "2.25", kRed)) << "A";
  EXPECT_TRUE(Shows(canvas, "0.203", kGreen)) << "1/2 ln 1.5";
  EXPECT_EQ(canvas.at(100, 200), (Color{10, 20, 30}));
  EXPECT_EQ(canvas.at(500, 200), (Color{40, 50, 60}));
  EXPECT_EQ(canvas.at(1, 1), kWhite);
}

TEST(DashboardTest, TheEndKeepsTheLastDecision) {
  const LearnerSpec spec = SpecOf(HeadKind::kQuantile, 2, 2);
  const Decision decision =
      DescribeDecision(spec, std::vector<float>{0, 0, 0, 2, 1, 3, 2, 6}, 1, 0.25);
  Dashboard dashboard(spec, kOptions);
  dashboard.Draw({.game = kGame, .decision = decision});
  const Canvas& canvas = dashboard.Draw({.game = kGame, .decision = decision, .last = true});
  EXPECT_TRUE(Shows(canvas, "end of episode 1", kBlack));
  EXPECT_TRUE(Shows(canvas, "1.25", kBlue));
}

TEST(DashboardTest, LeavesOutWhatAnAgentDoesNotHave) {
  const LearnerSpec scalar = SpecOf(HeadKind::kScalar, 1, 1);
  Dashboard alone(scalar, kOptions);
  const Decision values = DescribeDecision(scalar, std::vector<float>{1, 2}, 0, 1);
  const Canvas& single = alone.Draw({.game = kGame, .decision = values});
  EXPECT_TRUE(Shows(single, "Q of each action", kBlack));
  EXPECT_FALSE(Shows(single, "spread", kBlack));
  EXPECT_FALSE(Shows(single, "Return after", kBlack));
  EXPECT_FALSE(Shows(single, "disagree", kBlue));
  EXPECT_FALSE(Shows(single, "varies", kRed));

  const LearnerSpec quantile = SpecOf(HeadKind::kQuantile, 1, 2);
  Dashboard one(quantile, kOptions);
  const Decision distribution = DescribeDecision(quantile, std::vector<float>{1, 2, 3, 4}, 0, 1);
  const Canvas& drawn = one.Draw({.game = kGame, .decision = distribution});
  EXPECT_TRUE(Shows(drawn, "varies", kRed));
  EXPECT_FALSE(Shows(drawn, "disagree", kBlue));
  EXPECT_FALSE(Shows(drawn, "information gain", kGreen));
}

TEST(DashboardTest, TracesReachBackToTheWindow) {
  const LearnerSpec spec = SpecOf(HeadKind::kScalar, 1, 1);
  Dashboard dashboard(spec, kOptions);
  const auto draw = [&](float q) -> const Canvas& {
    const Decision decision = DescribeDecision(spec, std::vector<float>{q, 0}, 0, 1);
    return dashboard.Draw({.game = kGame, .decision = decision});
  };
  draw(1);
  draw(5);  // the axis of Q reaches to about 5
  EXPECT_TRUE(Shows(draw(1), "5.3", {0x7f, 0x7f, 0x7f}));
  for (int i = 0; i < 5; ++i) draw(1);
  EXPECT_FALSE(Shows(draw(1), "5.3", {0x7f, 0x7f, 0x7f})) << "five steps later it is forgotten";
}

TEST(PictureOfTest, ColorsChannelsAndKeepsGray) {
  const EnvironmentSpec planes{.height = 1, .width = 3, .channels = 2, .element_max = 1};
  const std::vector<std::byte> cells = {std::byte{1}, std::byte{0}, std::byte{1},
                                        std::byte{1}, std::byte{0}, std::byte{0}};
  EXPECT_EQ(PictureOf(planes, cells).rgb,
            (std::vector<std::uint8_t>{0x1f, 0x77, 0xb4, 0xff, 0x7f, 0x0e, 0xf2, 0xf2, 0xf2}));
  const EnvironmentSpec gray{.height = 1, .width = 2};
  EXPECT_EQ(PictureOf(gray, std::vector<std::byte>{std::byte{0}, std::byte{200}}).rgb,
            (std::vector<std::uint8_t>{0, 0, 0, 200, 200, 200}));
  const EnvironmentSpec floats{
      .element = EnvironmentSpec::Element::kFloat32, .element_min = -1, .element_max = 3};
  const float one[] = {1};
  const Picture half = PictureOf(floats, std::as_bytes(std::span(one)));
  EXPECT_EQ(half.rgb, (std::vector<std::uint8_t>{128, 128, 128}));
}

}  // namespace
}  // namespace uper::cli
