#include "uper/cli/report/report_tables.h"

#include <algorithm>
#include <cmath>

#include "uper/base/files/csv_writer.h"
#include "uper/stats/aggregate.h"
#include "uper/stats/atari_subset.h"
#include "uper/stats/bootstrap.h"
#include "uper/stats/comparison.h"
#include "uper/stats/stratified_bootstrap.h"

namespace uper::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kReplications = 10'000;
constexpr int kProfileReplications = 2'000;
constexpr int kProfileSteps = 80;
constexpr double kLargestTau = 8;

std::string FiniteText(double value) { return std::isfinite(value) ? NumberText(value) : ""; }

Json FiniteJson(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json AsJson(const Interval& interval) {
  return {{"value", FiniteJson(interval.value)},
          {"low", FiniteJson(interval.low)},
          {"high", FiniteJson(interval.high)}};
}

// Adds the line "agent,statistic,value,low,high", and the same to the object.
void AddStatistic(const std::string& agent, const char* name, const Interval& interval,
                  CsvWriter& csv, Json& row) {
  csv.Row(agent, name, FiniteText(interval.value), FiniteText(interval.low),
          FiniteText(interval.high));
  row[name] = AsJson(interval);
}

Json AggregatesOf(const ScoreTable& table, const std::string& agent,
                  std::span<const std::string> games, CsvWriter& csv) {
  const std::size_t last = table.marks().size() - 1;
  const TaskScores scores = table.ScoresAt(agent, games, last);
  const std::vector<RunIndices> resamples = DrawResamples(scores, kReplications);
  Json row = {{"agent", agent}, {"games", games.size()}};
  const std::pair<const char*, ScoreStatistic> statistics[] = {
      {"median", MedianOfTaskMeans},
      {"iqm", InterquartileMean},
      {"mean", MeanOfTaskMeans},
      {"optimality_gap", [](const TaskScores& s) { return OptimalityGap(s); }}};
  for (const auto& [name, statistic] : statistics) {
    AddStatistic(agent, name, StratifiedInterval(scores, resamples, statistic), csv, row);
  }
  std::vector<double> medians;
  for (const std::int64_t seed : table.CompleteSeeds(agent, games)) {
    medians.push_back(table.MedianCurve(agent, games, seed)[last]);
  }
  row["complete_seeds"] = medians.size();
  if (!medians.empty()) {
    AddStatistic(agent, "seed_median_mean", BootstrapMean(medians), csv, row);
    const double middle = Median(medians);
    const auto [low, high] = std::minmax_element(medians.begin(), medians.end());
    AddStatistic(agent, "seed_median_median", {.value = middle, .low = *low, .high = *high}, csv,
                 row);
  }
  return row;
}

double LargestTau(const ScoreTable& table) {
  double largest = 1;
  for (const std::string& agent : table.agents()) {
    for (const std::string& game : table.games()) {
      for (const std::int64_t seed : table.seeds()) {
        const ScoreTable::Curve* curve = table.Find(agent, game, seed);
        if (curve != nullptr) largest = std::max(largest, curve->normalized.back());
      }
    }
  }
  return std::min(std::ceil(largest), kLargestTau);
}

}  // namespace

void WriteRunTable(std::span<const RunCurve> runs, const ScoreTable& table,
                   const std::filesystem::path& file) {
  CsvWriter csv(file, {"agent", "game", "seed", "frames", "total_frames", "finished", "evaluations",
                       "return", "smoothed_return", "normalised"});
  for (const RunCurve& run : runs) {
    const ScoreTable::Curve& curve = *table.Find(run.agent, GameOf(run.env), run.seed);
    csv.Row(run.agent, GameOf(run.env), run.seed, run.frames, run.total_frames,
            run.finished ? "yes" : "no", run.evaluations.size(), curve.raw.back(),
            curve.smoothed.back(), curve.normalized.back());
  }
  csv.Commit();
}

Json WriteAggregates(const ScoreTable& table, std::span<const std::string> agents,
                     const std::filesystem::path& file) {
  CsvWriter csv(file, {"agent", "statistic", "value", "low", "high"});
  const ScoreTable::Selection shown = table.Comparable(agents);
  Json rows = Json::array();
  for (const std::string& agent : shown.agents) {
    rows.push_back(AggregatesOf(table, agent, shown.games, csv));
  }
  csv.Commit();
  return rows;
}

Json WriteComparisons(const ScoreTable& table, std::span<const experiments::atari::AgentPair> pairs,
                      const std::filesystem::path& file) {
  CsvWriter csv(file, {"subject", "baseline", "games", "probability", "low", "high"});
  Json rows = Json::array();
  const std::size_t last = table.marks().size() - 1;
  for (const experiments::atari::AgentPair& pair : pairs) {
    const std::vector<std::string> both{pair.subject, pair.baseline};
    const std::vector<std::string> games = table.CommonGames(both);
    if (games.empty()) continue;
    const TaskScores x = table.ScoresAt(pair.subject, games, last);
    const TaskScores y = table.ScoresAt(pair.baseline, games, last);
    const Interval interval =
        StratifiedInterval(x, y, DrawResamples(x, kReplications, 1),
                           DrawResamples(y, kReplications, 2), ProbabilityOfImprovement);
    csv.Row(pair.subject, pair.baseline, games.size(), interval.value, FiniteText(interval.low),
            FiniteText(interval.high));
    rows.push_back({{"subject", pair.subject},
                    {"baseline", pair.baseline},
                    {"games", games.size()},
                    {"probability", AsJson(interval)}});
  }
  csv.Commit();
  return rows;
}

Json WriteSubsets(const ScoreTable& table, std::span<const std::string> agents,
                  const std::filesystem::path& file) {
  CsvWriter csv(file, {"agent", "subset", "estimated_median_percent"});
  Json rows = Json::array();
  for (const std::string& agent : agents) {
    const std::vector<std::string> own = table.CommonGames(std::span(&agent, 1));
    const auto percent_of = [&](std::string_view game) -> std::optional<double> {
      const std::string name(game);
      if (table.suite() != "atari" || !std::binary_search(own.begin(), own.end(), name)) return {};
      return 100 * table.MeanCurve(agent, name).back();
    };
    for (const AtariSubset& subset : AtariSubsets()) {
      const std::optional<double> estimate = EstimatedMedian(subset, percent_of);
      if (!estimate) continue;
      csv.Row(agent, subset.name, *estimate);
      rows.push_back(
          {{"agent", agent}, {"subset", subset.name}, {"estimated_median_percent", *estimate}});
    }
  }
  csv.Commit();
  return rows;
}

void WriteProfiles(const ScoreTable& table, std::span<const std::string> agents,
                   const std::filesystem::path& file) {
  CsvWriter csv(file, {"agent", "tau", "share", "low", "high"});
  const ScoreTable::Selection shown = table.Comparable(agents);
  const double largest = LargestTau(table);
  for (const std::string& agent : shown.agents) {
    const TaskScores scores = table.ScoresAt(agent, shown.games, table.marks().size() - 1);
    const std::vector<RunIndices> resamples = DrawResamples(scores, kProfileReplications);
    for (int step = 0; step <= kProfileSteps; ++step) {
      const double tau = largest * step / kProfileSteps;
      const Interval share =
          StratifiedInterval(scores, resamples, [&](const TaskScores& resampled) {
            return PerformanceProfile(resampled, std::span(&tau, 1)).front();
          });
      csv.Row(agent, tau, share.value, FiniteText(share.low), FiniteText(share.high));
    }
  }
  csv.Commit();
}

}  // namespace uper::cli
