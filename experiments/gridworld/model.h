#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "uper/envs/grid/grid_map.h"
#include "uper/envs/grid/noisy_grid.h"
#include "uper/tabular/q_agent.h"

namespace uper::experiments::gridworld {

// The four agents of the figure: the same Q-learner, different replay.
enum class GridworldMethod { kNone, kEr, kPer, kUper };
inline constexpr std::array kGridworldMethods = {GridworldMethod::kNone, GridworldMethod::kEr,
                                                 GridworldMethod::kPer, GridworldMethod::kUper};
// "none", "er", "per", "uper".
std::string_view GridworldMethodName(GridworldMethod method);

struct GridworldOptions {
  GridMap map = DefaultGridMap();
  NoisyGridOptions environment;
  QAgentOptions agent;  // `replay` is set by the method
  double gamma = 0.9;
  int episodes = 150;
};

// The step as the learner gets it. The discount is 0 at the goal and gamma everywhere else, at a
// time-out too.
QTransition LearnerTransition(int s_tm1, int a_tm1, const GridStep& step, double gamma);

// A test episode. The agent acts greedily and learns nothing.
struct TestEpisode {
  double undiscounted_return = 0;  // rewards of noisy cells included
  int steps = 0;
  bool reached_goal = false;
};

struct GridworldTrace {
  std::vector<TestEpisode> tests;            // [episode], each after that training episode
  std::vector<std::int64_t> draws_by_state;  // replay draws by s_tm1, over the whole run
  std::int64_t draws_into_noise = 0;         // draws whose s_t is a noisy cell
};

// One run of one method, a pure function of its arguments. Every random stream is named and starts
// anew with each episode. No name contains the method. The four methods of a seed therefore meet
// the same exploration and noise for as long as they act alike, and can be compared in pairs.
GridworldTrace SimulateGridworld(const GridworldOptions& options, GridworldMethod method,
                                 std::uint64_t seed);

}  // namespace uper::experiments::gridworld
