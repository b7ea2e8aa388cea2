#include "uper/cli/video/dashboard.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace uper {
namespace {

// As in python/uper_plots.
constexpr Colour kBlue = {0x1f, 0x77, 0xb4};
constexpr Colour kGreen = {0x2c, 0xa0, 0x2c};
constexpr Colour kRed = {0xd6, 0x27, 0x28};
constexpr Colour kGrey = {0x7f, 0x7f, 0x7f};
constexpr Colour kLightGrey = {0xe6, 0xe6, 0xe6};
constexpr Colour kBlack = {0x22, 0x22, 0x22};
constexpr Colour kWhite = {255, 255, 255};

constexpr int kMargin = 30;
constexpr int kTop = 72;         // of the game and of the panels
constexpr int kGameWidth = 600;  // room for the game
constexpr int kGameHeight = 630;
constexpr int kPanelLeft = 680;  // titles
constexpr int kPlotLeft = 756;   // plots; numbers stand left of them
constexpr int kPlotRight = Dashboard::kWidth - kMargin;
constexpr int kTextHeight = 14;  // of letters without tails
constexpr int kGridScale = 16;   // pixels of the game from this size on get lines between them

std::string Short(double value) { return fmt::format("{:.3g}", value + 0.0); }

// `value` in [low, high] to a pixel between `from` and `to`.
double Place(double value, double low, double high, double from, double to) {
  return from + (value - low) / (high - low) * (to - from);
}

}  // namespace

Dashboard::Dashboard(const LearnerSpec& spec, const DashboardOptions& options)
    : spec_(spec), options_(options), canvas_(kWidth, kHeight) {}

const Canvas& Dashboard::Draw(const DashboardScene& scene) {
  if (!scene.last || past_.empty()) Remember(scene.decision);
  canvas_.Fill(kWhite);
  DrawHeader(scene);
  DrawGame(scene.game);
  const int width = kPlotRight - kPlotLeft;
  DrawValues(scene.decision, {kPlotLeft, kTop + 26, width, 138});
  if (has_distribution()) {
    DrawDistributions(scene.decision, {kPlotLeft, kTop + 230, width, 138});
  }
  DrawTraces(kTop + (has_distribution() ? 412 : 230));
  return canvas_;
}

void Dashboard::Remember(const Decision& decision) {
  Past past{.q = decision.q[decision.action],
            .epistemic = decision.uncertainty.epistemic,
            .aleatoric = decision.uncertainty.aleatoric,
            .info_gain = decision.info_gain,
            .values = {.low = decision.q[0], .high = decision.q[0]}};
  for (std::size_t a = 0; a < decision.q.size(); ++a) {
    past.values.low = std::min(past.values.low, decision.q[a] - decision.spread[a]);
    past.values.high = std::max(past.values.high, decision.q[a] + decision.spread[a]);
  }
  const auto [low, high] =
      std::minmax_element(decision.quantiles.begin(), decision.quantiles.end());
  past.returns = {.low = double{*low}, .high = double{*high}};
  past_.push_back(past);
  if (static_cast<int>(past_.size()) > options_.window_steps) past_.pop_front();
}

// The axis that holds all that was seen in the window, so that it does not jump with each step.
Dashboard::Range Dashboard::RangeOf(Range Past::* range) const {
  Range all = past_.back().*range;
  for (const Past& past : past_) {
    all.low = std::min(all.low, (past.*range).low);
    all.high = std::max(all.high, (past.*range).high);
  }
  const double pad = std::max(0.06 * (all.high - all.low), 1e-6 + 1e-6 * std::abs(all.high));
  return {.low = all.low - pad, .high = all.high + pad};
}

void Dashboard::DrawTextLeftOf(int x, int y, const std::string& text, Colour colour) {
  canvas_.Text(x - Canvas::TextWidth(text), y, text, colour);
}

void Dashboard::DrawHeader(const DashboardScene& scene) {
  constexpr int kY = 26;
  canvas_.Text(kMargin, kY, options_.title, kBlack, 3);
  const int after = kMargin + Canvas::TextWidth(options_.title, 3) + 30;
  canvas_.Text(after, kY + 7, options_.subtitle, kGrey);
  const std::string state =
      fmt::format("{}episode {}  step {}  return {}", scene.last ? "end of " : "",
                  scene.episode + 1, scene.step, Short(scene.episode_return));
  DrawTextLeftOf(kPlotRight, kY + 7, state, kBlack);
}

void Dashboard::DrawGame(const Picture& game) {
  const int scale = std::max(1, std::min(kGameWidth / game.width, kGameHeight / game.height));
  const int width = scale * game.width;
  const int height = scale * game.height;
  const int x = kMargin + (kGameWidth - width) / 2;
  canvas_.FillRect(x - 2, kTop - 2, width + 4, height + 4, kLightGrey);
  canvas_.DrawPicture(game, x, kTop, scale);
  if (scale < kGridScale) return;
  for (int i = 1; i < game.width; ++i) canvas_.FillRect(x + i * scale, kTop, 1, height, kWhite);
  for (int i = 1; i < game.height; ++i) canvas_.FillRect(x, kTop + i * scale, width, 1, kWhite);
}

void Dashboard::DrawFrame(const Box& box) {
  canvas_.FillRect(box.x, box.y, 1, box.height, kLightGrey);
  canvas_.FillRect(box.x, box.y + box.height, box.width, 1, kLightGrey);
}

// One column an action: a bar from Q - spread to Q + spread and a mark at Q.
void Dashboard::DrawValues(const Decision& decision, const Box& box) {
  canvas_.Text(kPanelLeft, box.y - 26,
               has_members()
                   ? fmt::format("Q of each action, spread of {} members", spec_.network.members)
                   : "Q of each action",
               kBlack);
  DrawFrame(box);
  const Range range = RangeOf(&Past::values);
  const auto y_of = [&](double value) {
    return Place(value, range.low, range.high, box.y + box.height, box.y);
  };
  DrawTextLeftOf(box.x - 6, box.y, Short(range.high), kGrey);
  DrawTextLeftOf(box.x - 6, box.y + box.height - kTextHeight, Short(range.low), kGrey);
  const int actions = static_cast<int>(decision.q.size());
  const int column = box.width / actions;
  const int bar = std::min(column * 6 / 10, 40);
  for (int a = 0; a < actions; ++a) {
    const bool chosen = a == decision.action;
    const int centre = box.x + a * column + column / 2;
    const Colour colour = chosen ? kBlue : kGrey;
    const int top = static_cast<int>(std::lround(y_of(decision.q[a] + decision.spread[a])));
    const int bottom = static_cast<int>(std::lround(y_of(decision.q[a] - decision.spread[a])));
    const int middle = static_cast<int>(std::lround(y_of(decision.q[a])));
    if (chosen) canvas_.FillRect(centre - column / 2, box.y, column, box.height, kBlue, 0.08);
    canvas_.FillRect(centre - bar / 2, top, bar, bottom - top + 1, colour, 0.4);
    canvas_.FillRect(centre - bar / 2, middle - 1, bar, 3, colour);
    const std::string name = std::to_string(a);
    canvas_.Text(centre - Canvas::TextWidth(name) / 2, box.y + box.height + 7, name, colour);
  }
}

// Cumulative distributions: of n quantiles the i-th in order of size lies at (value, (2 i + 1) /
// (2 n)). (Nothing makes a network put them out in order.)
void Dashboard::DrawDistributions(const Decision& decision, const Box& box) {
  canvas_.Text(kPanelLeft, box.y - 26,
               fmt::format("Return after action {}: P(return <= x){}", decision.action,
                           has_members() ? " by member" : ""),
               kBlack);
  DrawFrame(box);
  const Range range = RangeOf(&Past::returns);
  const double right = box.x + box.width;
  const auto x_of = [&](double value) { return Place(value, range.low, range.high, box.x, right); };
  DrawTextLeftOf(box.x - 6, box.y, "1", kGrey);
  DrawTextLeftOf(box.x - 6, box.y + box.height - kTextHeight, "0", kGrey);
  canvas_.Text(box.x, box.y + box.height + 7, Short(range.low), kGrey);
  DrawTextLeftOf(box.x + box.width, box.y + box.height + 7, Short(range.high), kGrey);

  const std::size_t count = spec_.network.outputs;
  const Canvas::Pen pen{.colour = kBlue, .thickness = 1.3, .opacity = has_members() ? 0.45 : 1.0};
  std::vector<float> values;
  for (int k = 0; k < spec_.network.members; ++k) {
    const auto member = std::span(decision.quantiles).subspan(k * count, count);
    values.assign(member.begin(), member.end());
    std::sort(values.begin(), values.end());
    const auto point = [&](std::size_t i) -> Canvas::Point {
      const double tau = (2.0 * static_cast<double>(i) + 1) / (2.0 * static_cast<double>(count));
      return {x_of(double{values[i]}), Place(tau, 0, 1, box.y + box.height, box.y)};
    };
    for (std::size_t i = 1; i < count; ++i) canvas_.Line(point(i - 1), point(i), pen);
  }
  const int mean = static_cast<int>(std::lround(x_of(decision.q[decision.action])));
  canvas_.FillRect(mean - 1, box.y, 2, box.height, kBlack, 0.7);
  const std::string label = "Q " + Short(decision.q[decision.action]);
  const int half = Canvas::TextWidth(label) / 2;
  canvas_.Text(std::clamp(mean - half, box.x + 90, box.x + box.width - 90 - 2 * half),
               box.y + box.height + 7, label, kBlack);
}

// They share the room that is left.
void Dashboard::DrawTraces(int top) {
  constexpr int kTallest = 110;
  std::vector<Trace> traces = {{&Past::q, "Q  value of the chosen action", kBlack, false}};
  if (has_members()) traces.push_back({&Past::epistemic, "E  the members disagree", kBlue, true});
  if (has_distribution()) {
    traces.push_back({&Past::aleatoric, "A  the return varies", kRed, true});
  }
  if (has_members() && has_distribution()) {
    traces.push_back({&Past::info_gain, "1/2 ln(1 + E/A)  information gain", kGreen, true});
  }
  const int height =
      std::min(kTallest, (kTop + kGameHeight - top) / static_cast<int>(traces.size()));
  for (const Trace& trace : traces) {
    DrawTrace(trace, {kPanelLeft, top, kPlotRight - kPanelLeft, height});
    top += height;
  }
}

void Dashboard::DrawTrace(const Trace& trace, const Box& box) {
  canvas_.Text(box.x, box.y, trace.label, trace.colour);
  DrawTextLeftOf(box.x + box.width, box.y, Short(past_.back().*trace.number), trace.colour);
  const int top = box.y + kTextHeight + 8;
  const int bottom = box.y + box.height - 6;
  canvas_.FillRect(box.x, bottom, box.width, 1, kLightGrey);
  double low = trace.from_zero ? 0 : past_.back().*trace.number;
  double high = past_.back().*trace.number;
  for (const Past& past : past_) {
    low = std::min(low, past.*trace.number);
    high = std::max(high, past.*trace.number);
  }
  if (!(high > low)) high = low + 1;  // a line at the bottom
  // The newest step stands at the right end.
  const auto point = [&](std::size_t i) -> Canvas::Point {
    const double steps_ago = static_cast<double>(past_.size() - 1 - i);
    return {Place(steps_ago, 0, std::max(1, options_.window_steps - 1), box.x + box.width, box.x),
            Place(past_[i].*trace.number, low, high, bottom - 1, top)};
  };
  for (std::size_t i = 1; i < past_.size(); ++i) {
    canvas_.Line(point(i - 1), point(i), {.colour = trace.colour, .thickness = 2});
  }
}

}  // namespace uper
