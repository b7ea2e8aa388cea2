#include "experiments/atari/score_files.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "uper/base/files/csv_writer.h"
#include "uper/stats/aggregate.h"
#include "uper/stats/comparison.h"
#include "uper/stats/stratified_bootstrap.h"

namespace uper::experiments::atari {
namespace {

// The aggregates of one agent at one frame mark.
struct AggregateRow {
  std::vector<double> seed_medians;
  Interval task_median;
  Interval iqm;
  double mean = 0;
  double gap = 0;
};

AggregateRow Aggregate(const ScoreTable& table, const std::string& agent,
                       std::span<const std::string> games, std::size_t mark, int replications) {
  const TaskScores scores = table.ScoresAt(agent, games, mark);
  const std::vector<RunIndices> resamples = DrawResamples(scores, replications);
  return {.task_median = StratifiedInterval(scores, resamples, MedianOfTaskMeans),
          .iqm = StratifiedInterval(scores, resamples, InterquartileMean),
          .mean = MeanOfTaskMeans(scores),
          .gap = OptimalityGap(scores)};
}

std::string OptionalText(bool known, double value) { return known ? NumberText(value) : ""; }

// A bound that is not finite is left empty: one run per game gives no interval.
std::string BoundText(double bound) { return OptionalText(std::isfinite(bound), bound); }

void WriteSeedMedians(const ScoreTable& table, std::span<const std::string> agents,
                      std::span<const std::string> games, const std::filesystem::path& file) {
  CsvWriter csv(file, {"agent", "seed", "frames", "median"});
  for (const std::string& agent : agents) {
    for (const std::int64_t seed : table.CompleteSeeds(agent, games)) {
      const std::vector<double> medians = table.MedianCurve(agent, games, seed);
      for (std::size_t mark = 0; mark < medians.size(); ++mark) {
        csv.Row(agent, seed, table.marks()[mark], medians[mark]);
      }
    }
  }
  csv.Commit();
}

}  // namespace

void WriteAggregateCurves(const ScoreTable& table, std::span<const std::string> agents,
                          std::span<const std::string> games, int replications,
                          const TaskRunner& run, const std::filesystem::path& folder) {
  const std::size_t marks = table.marks().size();
  std::vector<AggregateRow> rows(agents.size() * marks);
  run(rows.size(), [&](std::size_t index) {
    rows[index] = Aggregate(table, agents[index / marks], games, index % marks, replications);
  });
  for (std::size_t agent = 0; agent < agents.size(); ++agent) {
    for (const std::int64_t seed : table.CompleteSeeds(agents[agent], games)) {
      const std::vector<double> medians = table.MedianCurve(agents[agent], games, seed);
      for (std::size_t mark = 0; mark < marks; ++mark) {
        rows[agent * marks + mark].seed_medians.push_back(medians[mark]);
      }
    }
  }
  CsvWriter csv(folder / "data.csv",
                {"agent", "frames", "games", "seeds", "median_mean", "median_sd", "median_median",
                 "task_median", "task_median_low", "task_median_high", "iqm", "iqm_low", "iqm_high",
                 "mean", "optimality_gap"});
  for (std::size_t index = 0; index < rows.size(); ++index) {
    const AggregateRow& row = rows[index];
    const std::vector<double>& medians = row.seed_medians;
    const bool known = !medians.empty();
    csv.Row(agents[index / marks], table.marks()[index % marks], games.size(), medians.size(),
            OptionalText(known, known ? Mean(medians) : 0),
            OptionalText(known, known ? StandardDeviation(medians) : 0),
            OptionalText(known, known ? Median(medians) : 0), row.task_median.value,
            BoundText(row.task_median.low), BoundText(row.task_median.high), row.iqm.value,
            BoundText(row.iqm.low), BoundText(row.iqm.high), row.mean, row.gap);
  }
  csv.Commit();
  WriteSeedMedians(table, agents, games, folder / "seeds.csv");
}

void WriteGameCurves(const ScoreTable& table, std::span<const std::string> agents,
                     const std::filesystem::path& file) {
  CsvWriter csv(file,
                {"agent", "game", "seed", "frames", "return", "smoothed_return", "normalised"});
  for (const std::string& agent : agents) {
    for (const std::string& game : table.games()) {
      for (const std::int64_t seed : table.seeds()) {
        const ScoreTable::Curve* curve = table.Find(agent, game, seed);
        if (curve == nullptr) continue;
        for (std::size_t mark = 0; mark < table.marks().size(); ++mark) {
          csv.Row(agent, game, seed, table.marks()[mark], curve->raw[mark], curve->smoothed[mark],
                  curve->normalized[mark]);
        }
      }
    }
  }
  csv.Commit();
}

void WriteImprovements(const ScoreTable& table, std::span<const AgentPair> pairs,
                       const std::filesystem::path& file) {
  CsvWriter csv(
      file, {"subject", "baseline", "game", "improvement_percent", "subject_sum", "baseline_sum"});
  for (const AgentPair& pair : pairs) {
    const std::vector<std::string> both{pair.subject, pair.baseline};
    for (const std::string& game : table.CommonGames(both)) {
      const std::vector<double> subject = table.MeanCurve(pair.subject, game);
      const std::vector<double> baseline = table.MeanCurve(pair.baseline, game);
      const std::optional<double> improvement = CumulativeImprovement(subject, baseline);
      const double marks = static_cast<double>(subject.size());
      csv.Row(pair.subject, pair.baseline, game,
              OptionalText(improvement.has_value(), improvement.value_or(0)), marks * Mean(subject),
              marks * Mean(baseline));
    }
  }
  csv.Commit();
}

std::vector<MissingRun> MissingRuns(const ScoreTable& table, std::span<const std::string> agents,
                                    std::span<const std::string> games,
                                    std::span<const std::int64_t> seeds) {
  std::vector<MissingRun> missing;
  for (const std::string& agent : agents) {
    for (const std::string& game : games) {
      for (const std::int64_t seed : seeds) {
        if (table.Find(agent, game, seed) == nullptr) missing.push_back({agent, game, seed});
      }
    }
  }
  return missing;
}

void WriteMissing(std::span<const MissingRun> missing, const std::filesystem::path& file) {
  CsvWriter csv(file, {"agent", "game", "seed"});
  for (const MissingRun& run : missing) csv.Row(run.agent, run.game, run.seed);
  csv.Commit();
}

void WriteNotes(const ScoreTable& table, const FigureNotes& notes,
                const std::filesystem::path& file) {
  const nlohmann::ordered_json json = {{"suite", table.suite()},
                                       {"window", table.window()},
                                       {"frames", table.marks().back()},
                                       {"marks", table.marks().size()},
                                       {"seeds", table.seeds()},
                                       {"agents", notes.agents},
                                       {"games", notes.games},
                                       {"enlarged", notes.enlarged},
                                       {"notes", notes.notes}};
  WriteFileAtomically(file, json.dump(2) + "\n");
}

}  // namespace uper::experiments::atari
