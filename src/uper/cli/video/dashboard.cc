#include "uper/cli/video/dashboard.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "uper/cli/video/palette.h"

namespace uper::cli {
namespace {

constexpr int kMargin = 30;
constexpr int kTop = 72;         // upper edge of the game and of the panels
constexpr int kGameWidth = 600;  // space for the game
constexpr int kGameHeight = 630;
constexpr int kPanelLeft = 680;  // left edge of titles
constexpr int kPlotLeft = 756;   // left edge of plots; numbers stand left of it
constexpr int kPlotRight = Dashboard::kWidth - kMargin;
constexpr int kTextHeight = 14;  // letters without tails
constexpr int kGridScale = 16;   // game pixels of this size or more get lines between them

std::string Short(double value) { return fmt::format("{:.3g}", value + 0.0); }

// Maps `value` in [low, high] to a pixel between `from` and `to`.
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

// The range of all values in the window. An axis with this range does not jump with each step.
Dashboard::Range Dashboard::RangeOf(Range Past::* range) const {
  Range all = past_.back().*range;
  for (const Past& past : past_) {
    all.low = std::min(all.low, (past.*range).low);
    all.high = std::max(all.high, (past.*range).high);
  }
  const double pad = std::max(0.06 * (all.high - all.low), 1e-6 + 1e-6 * std::abs(all.high));
  return {.low = all.low - pad, .high = all.high + pad};
}

void Dashboard::DrawTextLeftOf(int x, int y, const std::string& text, Color color) {
  canvas_.Text(x - Canvas::TextWidth(text), y, text, color);
}

void Dashboard::DrawHeader(const DashboardScene& scene) {
  constexpr int kY = 26;
  canvas_.Text(kMargin, kY, options_.title, kBlack, 3);
  const int after = kMargin + Canvas::TextWidth(options_.title, 3) + 30;
  canvas_.Text(after, kY + 7, options_.subtitle, kGray);
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
  canvas_.FillRect(x - 2, kTop - 2, width + 4, height + 4, kLightGray);
  canvas_.DrawPicture(game, x, kTop, scale);
  if (scale < kGridScale) return;
  for (int i = 1; i < game.width; ++i) canvas_.FillRect(x + i * scale, kTop, 1, height, kWhite);
  for (int i = 1; i < game.height; ++i) canvas_.FillRect(x, kTop + i * scale, width, 1, kWhite);
}

void Dashboard::DrawFrame(const Box& box) {
  canvas_.FillRect(box.x, box.y, 1, box.height, kLightGray);
  canvas_.FillRect(box.x, box.y + box.height, box.width, 1, kLightGray);
}

// Each action has a column with a bar from Q - spread to Q + spread and a mark at Q.
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
  DrawTextLeftOf(box.x - 6, box.y, Short(range.high), kGray);
  DrawTextLeftOf(box.x - 6, box.y + box.height - kTextHeight, Short(range.low), kGray);
  const int actions = static_cast<int>(decision.q.size());
  const int column = box.width / actions;
  const int bar = std::min(column * 6 / 10, 40);
  for (int a = 0; a < actions; ++a) {
    const bool chosen = a == decision.action;
    const int center = box.x + a * column + column / 2;
    const Color color = chosen ? kBlue : kGray;
    const int top = static_cast<int>(std::lround(y_of(decision.q[a] + decision.spread[a])));
    const int bottom = static_cast<int>(std::lround(y_of(decision.q[a] - decision.spread[a])));
    const int middle = static_cast<int>(std::lround(y_of(decision.q[a])));
    if (chosen) canvas_.FillRect(center - column / 2, box.y, column, box.height, kBlue, 0.08);
    canvas_.FillRect(center - bar / 2, top, bar, bottom - top + 1, color, 0.4);
    canvas_.FillRect(center - bar / 2, middle - 1, bar, 3, color);
    const std::string name = std::to_string(a);
    canvas_.Text(center - Canvas::TextWidth(name) / 2, box.y + box.height + 7, name, color);
  }
}

// Draws cumulative distributions. The i-th smallest of n quantiles lies at (value, (2 i + 1) / (2
// n)). The quantiles are sorted first, because a network may give them in any order.
void Dashboard::DrawDistributions(const Decision& decision, const Box& box) {
  canvas_.Text(kPanelLeft, box.y - 26,
               fmt::format("Return after action {}: P(return <= x){}", decision.action,
                           has_members() ? " by member" : ""),
               kBlack);
  DrawFrame(box);
  const Range range = RangeOf(&Past::returns);
  const double right = box.x + box.width;
  const auto x_of = [&](double value) { return Place(value, range.low, range.high, box.x, right); };
  DrawTextLeftOf(box.x - 6, box.y, "1", kGray);
  DrawTextLeftOf(box.x - 6, box.y + box.height - kTextHeight, "0", kGray);
  canvas_.Text(box.x, box.y + box.height + 7, Short(range.low), kGray);
  DrawTextLeftOf(box.x + box.width, box.y + box.height + 7, Short(range.high), kGray);

  const std::size_t count = spec_.network.outputs;
  const Canvas::Pen pen{.color = kBlue, .thickness = 1.3, .opacity = has_members() ? 0.45 : 1.0};
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

// The traces divide the remaining height.
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
  canvas_.Text(box.x, box.y, trace.label, trace.color);
  DrawTextLeftOf(box.x + box.width, box.y, Short(past_.back().*trace.number), trace.color);
  const int top = box.y + kTextHeight + 8;
  const int bottom = box.y + box.height - 6;
  canvas_.FillRect(box.x, bottom, box.width, 1, kLightGray);
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
    canvas_.Line(point(i - 1), point(i), {.color = trace.color, .thickness = 2});
  }
}

}  // namespace uper::cli
