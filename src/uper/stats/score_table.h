#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "uper/stats/reference_scores.h"
#include "uper/stats/run_curve.h"
#include "uper/stats/task_scores.h"

namespace uper {

// The curves of many runs of one suite, smoothed, normalized and aligned to common frame marks.
// Constant after construction.
class ScoreTable {
 public:
  struct Curve {
    std::vector<double> raw;       // [mark] mean return of the evaluation
    std::vector<double> smoothed;  // [mark] trailing mean over the run's last `window` evaluations
    std::vector<double> normalized;  // [mark] smoothed, human-normalized
  };

  // Throws Error(kUsage) for an environment without reference scores, two runs of the same agent,
  // environment and seed, different suites, or runs without a common frame mark.
  // REQUIRES: at least one run.
  ScoreTable(std::span<const RunCurve> runs, const ReferenceScores& references, int window);

  const std::string& suite() const { return suite_; }
  int window() const { return window_; }
  // The frames at which every run has an evaluation.
  const std::vector<std::int64_t>& marks() const { return marks_; }
  // Sorted; games without the suite's name.
  const std::vector<std::string>& agents() const { return agents_; }
  const std::vector<std::string>& games() const { return games_; }
  const std::vector<std::int64_t>& seeds() const { return seeds_; }
  const ReferenceScore& reference(const std::string& game) const { return references_.at(game); }

  // Null if there is no such run.
  const Curve* Find(const std::string& agent, const std::string& game, std::int64_t seed) const;
  bool Has(const std::string& agent) const;
  // The given agents that have a run, in the given order.
  std::vector<std::string> Present(std::span<const std::string> agents) const;

  // Games for which each of these agents has a run: aggregates are comparable only on them.
  std::vector<std::string> CommonGames(std::span<const std::string> agents) const;
  // Agents that can be compared on one axis, and their common games. An agent takes part if it has
  // at least half as many games as the agent with the most. So an agent with few games cannot
  // shrink the comparison of the others. Of these, the agents that share a game are taken in order.
  struct Selection {
    std::vector<std::string> agents;
    std::vector<std::string> games;  // that all of them have
  };
  Selection Comparable(std::span<const std::string> agents) const;
  // Seeds for which the agent has a run in each of these games.
  std::vector<std::int64_t> CompleteSeeds(const std::string& agent,
                                          std::span<const std::string> games) const;
  // Normalized scores at a mark, [game][run], with every existing seed.
  TaskScores ScoresAt(const std::string& agent, std::span<const std::string> games,
                      std::size_t mark) const;
  // [mark] the median over games for one seed. REQUIRES: the seed is complete.
  std::vector<double> MedianCurve(const std::string& agent, std::span<const std::string> games,
                                  std::int64_t seed) const;
  // [mark] the normalized score, mean over the existing seeds. REQUIRES: at least one.
  std::vector<double> MeanCurve(const std::string& agent, const std::string& game) const;

 private:
  using Key = std::tuple<std::string, std::string, std::int64_t>;  // agent, game, seed

  std::string suite_;
  int window_;
  std::vector<std::int64_t> marks_;
  std::vector<std::string> agents_;
  std::vector<std::string> games_;
  std::vector<std::int64_t> seeds_;
  std::map<Key, Curve> curves_;
  std::map<std::string, ReferenceScore> references_;  // by game
};

}  // namespace uper
