#pragma once

#include <array>
#include <vector>

#include "experiments/framework/claim.h"
#include "experiments/gridworld/model.h"

namespace uper::experiments::gridworld {

// The numbers that the claims compare, for one seed and method. A share of draws is 0 if there were
// no draws.
struct GridworldSummary {
  double mean_return = 0;       // over all test episodes: the area under the learning curve
  double late_goal_share = 0;   // share of the last 30 test episodes that reach the goal
  double early_draw_share = 0;  // draws whose s_tm1 is nearer to the start than half the goal's
                                // distance
  double late_draw_share = 0;   // the other draws
  double noisy_draw_share = 0;  // draws whose s_t is a noisy cell
};

GridworldSummary Summarize(const GridMap& map, const GridworldTrace& trace);

// [method][seed], methods in the order of kGridworldMethods.
using GridworldSummaries = std::array<std::vector<GridworldSummary>, kGridworldMethods.size()>;

// Claims 20 to 26 of docs/claims.md.
std::vector<Claim> GridworldClaims(const GridMap& map, const GridworldSummaries& summaries);

}  // namespace uper::experiments::gridworld
