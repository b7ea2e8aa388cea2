#pragma once

#include <cstdint>
#include <deque>
#include <string>

#include "uper/cli/video/canvas.h"
#include "uper/cli/video/decision_view.h"
#include "uper/nn/learner.h"

namespace uper::cli {

// The contents of one picture of the film.
struct DashboardScene {
  const Picture& game;
  const Decision& decision;
  std::int64_t episode = 0;  // from 0
  std::int64_t step = 0;
  double episode_return = 0;
  bool last = false;  // the episode is over; the decision is its last one
};

struct DashboardOptions {
  std::string title;     // the game
  std::string subtitle;  // the agent
  int window_steps = 0;  // length of the traces, and of the window for the axes
};

// Draws an agent at play. The game is on the left. On the right are the value of each action, the
// members' return distributions of the chosen action, and traces of Q, E, A and the information
// gain. Scalar heads have no distribution and no A; single networks have no E. Not thread-safe.
class Dashboard {
 public:
  static constexpr int kWidth = 1280;
  static constexpr int kHeight = 720;

  Dashboard(const LearnerSpec& spec, const DashboardOptions& options);

  // Adds the scene's decision to the traces unless the episode is over, then draws. The canvas is
  // valid until the next call.
  const Canvas& Draw(const DashboardScene& scene);

 private:
  struct Range {
    double low = 0;
    double high = 0;
  };
  // The numbers of one step that later pictures show.
  struct Past {
    double q = 0;
    double epistemic = 0;
    double aleatoric = 0;
    double info_gain = 0;
    Range values;   // values of all actions, with their spread
    Range returns;  // quantiles of the chosen action
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
    Color color;
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
  void DrawTextLeftOf(int x, int y, const std::string& text, Color color);

  const LearnerSpec spec_;
  const DashboardOptions options_;
  std::deque<Past> past_;  // newest last; never empty while drawing
  Canvas canvas_;
};

}  // namespace uper::cli
