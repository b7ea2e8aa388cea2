#include "experiments/gridworld/claims.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <string>
#include <utility>

namespace uper::experiments::gridworld {
namespace {

constexpr std::size_t kLateEpisodes = 30;
constexpr double kSolvedShare = 0.9;

using Field = double GridworldSummary::*;

bool IsEarly(const GridMap& map, int cell) {
  const int distance = map.distances()[static_cast<std::size_t>(cell)];
  return distance != GridMap::kUnreachable && 2 * distance < map.goal_distance();
}

// Share of early cells among the cells that the agent can leave (reachable, not the goal). A memory
// that holds every cell equally often would show this share.
double EarlyCellShare(const GridMap& map) {
  int early = 0;
  int cells = 0;
  for (int cell = 0; cell < map.cell_count(); ++cell) {
    const bool reachable = map.distances()[static_cast<std::size_t>(cell)] != GridMap::kUnreachable;
    if (!reachable || map.cell(cell) == GridCell::kGoal) continue;
    ++cells;
    if (IsEarly(map, cell)) ++early;
  }
  return static_cast<double>(early) / cells;
}

const std::vector<GridworldSummary>& Of(const GridworldSummaries& summaries,
                                        GridworldMethod method) {
  return summaries[static_cast<std::size_t>(method)];
}

// Per seed: field(method) - baseline.
std::vector<double> Above(const GridworldSummaries& summaries, GridworldMethod method, Field field,
                          double baseline) {
  const std::vector<GridworldSummary>& seeds = Of(summaries, method);
  std::vector<double> differences(seeds.size());
  std::transform(seeds.begin(), seeds.end(), differences.begin(),
                 [&](const GridworldSummary& summary) { return summary.*field - baseline; });
  return differences;
}

// Per seed: field(a) - field(b).
std::vector<double> Difference(const GridworldSummaries& summaries, GridworldMethod a,
                               GridworldMethod b, Field field) {
  std::vector<double> differences(Of(summaries, a).size());
  for (std::size_t seed = 0; seed < differences.size(); ++seed) {
    differences[seed] = Of(summaries, a)[seed].*field - Of(summaries, b)[seed].*field;
  }
  return differences;
}

std::vector<Claim> ReturnClaims(const GridworldSummaries& summaries) {
  using enum GridworldMethod;
  const Field mean_return = &GridworldSummary::mean_return;
  const std::string over_all =
      "mean undiscounted return over all test episodes (area under the curve), ";
  return {
      ClaimPositive({.id = "20",
                     .statement = "the gridworld is solved without replay",
                     .where_in_paper = "L359",
                     .statistic = "none: share of the last 30 test episodes that reach the goal, "
                                  "minus 0.9; positive supports"},
                    Above(summaries, kNone, &GridworldSummary::late_goal_share, kSolvedShare)),
      ClaimPositive({.id = "21",
                     .statement = "uniform replay (ER) learns faster than no replay",
                     .where_in_paper = "L359",
                     .statistic = over_all + "ER - none; positive supports"},
                    Difference(summaries, kEr, kNone, mean_return)),
      ClaimPositive({.id = "22",
                     .statement = "PER improves on ER",
                     .where_in_paper = "L359",
                     .statistic = over_all + "PER - ER; positive supports"},
                    Difference(summaries, kPer, kEr, mean_return)),
      ClaimPositive({.id = "23",
                     .statement = "UPER improves on PER",
                     .where_in_paper = "L359",
                     .statistic = over_all + "UPER - PER; positive supports"},
                    Difference(summaries, kUper, kPer, mean_return)),
  };
}

std::vector<Claim> EarlyClaims(const GridMap& map, const GridworldSummaries& summaries) {
  using enum GridworldMethod;
  const Field early = &GridworldSummary::early_draw_share;
  const std::string statement = "ER samples the early parts of a trajectory more";
  const std::string share =
      "share of ER's draws whose s_tm1 is nearer to the start than half the goal's distance, ";
  return {
      ClaimPositive({.id = "24a",
                     .statement = statement + " than UPER does",
                     .where_in_paper = "L329",
                     .statistic = share + "minus UPER's; positive supports (mirror of 26a)"},
                    Difference(summaries, kEr, kUper, early)),
      ClaimPositive({.id = "24b",
                     .statement = statement + " than their share of the maze",
                     .where_in_paper = "L329",
                     .statistic = share + "minus the share of such cells; positive supports"},
                    Above(summaries, kEr, early, EarlyCellShare(map))),
  };
}

std::vector<Claim> NoiseAndLateClaims(const GridworldSummaries& summaries) {
  using enum GridworldMethod;
  const Field late = &GridworldSummary::late_draw_share;
  const std::string share =
      "share of UPER's draws whose s_tm1 is at least half the goal's distance from the start, ";
  return {
      ClaimPositive({.id = "25",
                     .statement = "PER over-samples the noisy cells",
                     .where_in_paper = "L329, L359",
                     .statistic = "share of draws whose s_t is a noisy cell, PER - ER; positive "
                                  "supports"},
                    Difference(summaries, kPer, kEr, &GridworldSummary::noisy_draw_share)),
      ClaimPositive({.id = "26a",
                     .statement = "UPER samples late states more than ER does",
                     .where_in_paper = "L329, L359",
                     .statistic = share + "minus ER's; positive supports"},
                    Difference(summaries, kUper, kEr, late)),
      ClaimPositive({.id = "26b",
                     .statement = "UPER samples late states more than PER does",
                     .where_in_paper = "L329, L359",
                     .statistic = share + "minus PER's; positive supports"},
                    Difference(summaries, kUper, kPer, late)),
  };
}

double ShareOf(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

GridworldSummary Summarize(const GridMap& map, const GridworldTrace& trace) {
  GridworldSummary summary;
  const std::size_t episodes = trace.tests.size();
  const std::size_t late = std::min(kLateEpisodes, episodes);
  for (std::size_t episode = 0; episode < episodes; ++episode) {
    summary.mean_return += trace.tests[episode].undiscounted_return;
    if (episode >= episodes - late && trace.tests[episode].reached_goal) ++summary.late_goal_share;
  }
  summary.mean_return /= static_cast<double>(episodes);
  summary.late_goal_share /= static_cast<double>(late);

  std::int64_t draws = 0;
  std::int64_t early_draws = 0;
  for (int cell = 0; cell < map.cell_count(); ++cell) {
    const std::int64_t drawn = trace.draws_by_state[static_cast<std::size_t>(cell)];
    draws += drawn;
    if (IsEarly(map, cell)) early_draws += drawn;
  }
  summary.early_draw_share = ShareOf(early_draws, draws);
  summary.late_draw_share = ShareOf(draws - early_draws, draws);
  summary.noisy_draw_share = ShareOf(trace.draws_into_noise, draws);
  return summary;
}

std::vector<Claim> GridworldClaims(const GridMap& map, const GridworldSummaries& summaries) {
  std::vector<Claim> claims = ReturnClaims(summaries);
  for (std::vector<Claim>& part :
       std::array{EarlyClaims(map, summaries), NoiseAndLateClaims(summaries)}) {
    std::move(part.begin(), part.end(), std::back_inserter(claims));
  }
  return claims;
}

}  // namespace uper::experiments::gridworld
