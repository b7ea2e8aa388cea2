#pragma once

#include <cstdint>
#include <deque>
#include <string>

#include "uper/cli/video/canvas.h"
#include "uper/cli/video/decision_view.h"
#include "uper/nn/learner.h"

namespace uper {

// What one picture of the film shows.
struct DashboardScene {
  const Picture& game;
  const Decision& decision;
  std::int64_t episode = 0;  // from 0
  std::int64_t step = 0;
  double episode_return = 0;
  bool last = false;  // the episode is over; the decision is the one that ended it
};

struct DashboardOptions {
  std::string title;     // the game
  std::string subtitle;  // the agent
  int window_steps = 0;  // how far back traces and the ranges of the axes reach
};

// Draws an agent at play: the game on the left; on the right the value of each action, the members'
// distributions of the return of the chosen one, and how Q, E, A and the information gain went.
// Scalar heads have no distribution and no A, single networks no E. Not thread-safe.
class Dashboard {
 public:
  static constexpr int kWidth = 1280;
  static constexpr int kHeight = 720;

  Dashboard(const LearnerSpec& spec, const DashboardOptions& options);

  // Adds the scene's decision to the traces, unless it is a last one, and draws. The canvas holds
  // until the next call.
  const Canvas& Draw(const DashboardScene& scene);

 private:
  struct Range {
    double low = 0;
    double high = 0;
  };
  // Numbers of one step that later pictures need.
  struct Past {
    double q = 0;
    double epistemic = 0;
    double aleatoric = 0;
    double info_gain = 0;
    Range values;   // of all actions, with their spread
    Range returns;  // of the chosen action's quantiles
  };
  struct Box {
    int x = 0;
    int y = 0;
    int width = 0;
    int height = 0;
  };
  struct Trace {
    double Past::* number;
    const char* label;
    Colour colour;
    bool from_zero;
  };

  bool has_distribution() const { return spec_.network.outputs > 1; }
  bool has_members() const { return spec_.network.members > 1; }
  void Remember(const Decision& decision);
  Range RangeOf(Range Past::* range) const;
  void DrawHeader(const DashboardScene& scene);
  void DrawGame(const Picture& game);
  void DrawValues(const Decision& decision, const Box& box);
  void DrawDistributions(const Decision& decision, const Box& box);
  void DrawTraces(int top);
  void DrawTrace(const Trace& trace, const Box& box);
  void DrawFrame(const Box& box);
  void DrawTextLeftOf(int x, int y, const std::string& text, Colour colour);

  const LearnerSpec spec_;
  const DashboardOptions options_;
  std::deque<Past> past_;  // newest last; never empty while drawing
  Canvas canvas_;
};

}  // namespace uper
