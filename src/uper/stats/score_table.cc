#include "uper/stats/score_table.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "uper/base/check.h"
#include "uper/stats/aggregate.h"
#include "uper/stats/smoothing.h"

namespace uper {
namespace {

std::vector<std::int64_t> FramesOf(const RunCurve& run) {
  std::vector<std::int64_t> frames;
  for (const RunCurve::Evaluation& evaluation : run.evaluations) {
    frames.push_back(evaluation.frames);
  }
  return frames;
}

std::vector<std::int64_t> CommonMarks(std::span<const RunCurve> runs) {
  std::vector<std::int64_t> marks = FramesOf(runs.front());
  for (const RunCurve& run : runs) {
    const std::vector<std::int64_t> own = FramesOf(run);
    std::vector<std::int64_t> both;
    std::set_intersection(marks.begin(), marks.end(), own.begin(), own.end(),
                          std::back_inserter(both));
    marks = std::move(both);
  }
  if (marks.empty()) {
    throw Error(ErrorKind::kUsage,
                "these runs have no evaluation at the same number of frames; runs that are to be "
                "compared need the same evaluate_every_frames");
  }
  return marks;
}

ScoreTable::Curve CurveAt(const RunCurve& run, const std::vector<std::int64_t>& marks,
                          const ReferenceScore& reference, int window) {
  std::vector<double> raw;
  for (const RunCurve::Evaluation& evaluation : run.evaluations) {
    raw.push_back(evaluation.mean_return);
  }
  const std::vector<double> smoothed = TrailingMean(raw, window);
  ScoreTable::Curve curve;
  for (std::size_t i = 0; i < raw.size(); ++i) {
    if (!std::binary_search(marks.begin(), marks.end(), run.evaluations[i].frames)) continue;
    curve.raw.push_back(raw[i]);
    curve.smoothed.push_back(smoothed[i]);
    curve.normalized.push_back(NormalizedScore(smoothed[i], reference));
  }
  return curve;
}

const ReferenceScore& ReferenceFor(const RunCurve& run, const ReferenceScores& references) {
  const auto found = references.find(run.env);
  if (found != references.end()) return found->second;
  throw Error(ErrorKind::kUsage, run.folder + ": there are no reference scores for " + run.env +
                                     "; give a CSV file with the columns env,random,reference");
}

template <typename T>
std::vector<T> Sorted(const std::set<T>& values) {
  return {values.begin(), values.end()};
}

}  // namespace

ScoreTable::ScoreTable(std::span<const RunCurve> runs, const ReferenceScores& references,
                       int window)
    : window_(window) {
  UPER_CHECK(!runs.empty(), "a table needs at least one run");
  suite_ = SuiteOf(runs.front().env);
  marks_ = CommonMarks(runs);
  std::set<std::string> agents;
  std::set<std::string> games;
  std::set<std::int64_t> seeds;
  std::map<Key, std::string> folders;
  for (const RunCurve& run : runs) {
    if (SuiteOf(run.env) != suite_) {
      throw Error(ErrorKind::kUsage,
                  "runs of different suites cannot be aggregated: " + runs.front().folder + " is " +
                      runs.front().env + ", " + run.folder + " is " + run.env);
    }
    const ReferenceScore& reference = ReferenceFor(run, references);
    const std::string game = GameOf(run.env);
    const Key key{run.agent, game, run.seed};
    const auto [first, is_new] = folders.emplace(key, run.folder);
    if (!is_new) {
      throw Error(ErrorKind::kUsage, "two runs of " + run.agent + " on " + run.env + " with seed " +
                                         std::to_string(run.seed) + ": " + first->second + " and " +
                                         run.folder + "; give one of them");
    }
    curves_[key] = CurveAt(run, marks_, reference, window);
    references_[game] = reference;
    agents.insert(run.agent);
    games.insert(game);
    seeds.insert(run.seed);
  }
  agents_ = Sorted(agents);
  games_ = Sorted(games);
  seeds_ = Sorted(seeds);
}

const ScoreTable::Curve* ScoreTable::Find(const std::string& agent, const std::string& game,
                                          std::int64_t seed) const {
  const auto found = curves_.find(Key{agent, game, seed});
  return found == curves_.end() ? nullptr : &found->second;
}

bool ScoreTable::Has(const std::string& agent) const {
  return std::binary_search(agents_.begin(), agents_.end(), agent);
}

std::vector<std::string> ScoreTable::Present(std::span<const std::string> agents) const {
  std::vector<std::string> present;
  std::copy_if(agents.begin(), agents.end(), std::back_inserter(present),
               [&](const std::string& agent) { return Has(agent); });
  return present;
}

std::vector<std::string> ScoreTable::CommonGames(std::span<const std::string> agents) const {
  const auto has_any_seed = [&](const std::string& agent, const std::string& game) {
    return std::any_of(seeds_.begin(), seeds_.end(),
                       [&](std::int64_t seed) { return Find(agent, game, seed) != nullptr; });
  };
  std::vector<std::string> common;
  for (const std::string& game : games_) {
    const bool all = std::all_of(agents.begin(), agents.end(), [&](const std::string& agent) {
      return has_any_seed(agent, game);
    });
    if (all) common.push_back(game);
  }
  return common;
}

ScoreTable::Selection ScoreTable::Comparable(std::span<const std::string> agents) const {
  std::size_t most = 0;
  for (const std::string& agent : agents) {
    most = std::max(most, CommonGames(std::span(&agent, 1)).size());
  }
  Selection kept;
  for (const std::string& agent : agents) {
    if (2 * CommonGames(std::span(&agent, 1)).size() < most) continue;
    std::vector<std::string> with = kept.agents;
    with.push_back(agent);
    std::vector<std::string> games = CommonGames(with);
    if (!games.empty()) kept = {std::move(with), std::move(games)};
  }
  return kept;
}

std::vector<std::int64_t> ScoreTable::CompleteSeeds(const std::string& agent,
                                                    std::span<const std::string> games) const {
  std::vector<std::int64_t> complete;
  for (const std::int64_t seed : seeds_) {
    const bool all = std::all_of(games.begin(), games.end(), [&](const std::string& game) {
      return Find(agent, game, seed) != nullptr;
    });
    if (all) complete.push_back(seed);
  }
  return complete;
}

TaskScores ScoreTable::ScoresAt(const std::string& agent, std::span<const std::string> games,
                                std::size_t mark) const {
  TaskScores scores;
  for (const std::string& game : games) {
    std::vector<double>& runs = scores.emplace_back();
    for (const std::int64_t seed : seeds_) {
      if (const Curve* curve = Find(agent, game, seed)) runs.push_back(curve->normalized.at(mark));
    }
  }
  return scores;
}

std::vector<double> ScoreTable::MedianCurve(const std::string& agent,
                                            std::span<const std::string> games,
                                            std::int64_t seed) const {
  std::vector<double> medians;
  for (std::size_t mark = 0; mark < marks_.size(); ++mark) {
    std::vector<double> scores;
    for (const std::string& game : games) {
      const Curve* curve = Find(agent, game, seed);
      UPER_CHECK(curve != nullptr, "a seed that is not complete");
      scores.push_back(curve->normalized[mark]);
    }
    medians.push_back(Median(std::move(scores)));
  }
  return medians;
}

std::vector<double> ScoreTable::MeanCurve(const std::string& agent, const std::string& game) const {
  std::vector<double> means;
  for (std::size_t mark = 0; mark < marks_.size(); ++mark) {
    means.push_back(Mean(ScoresAt(agent, std::span(&game, 1), mark).front()));
  }
  return means;
}

}  // namespace uper
