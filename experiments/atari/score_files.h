#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "uper/stats/score_table.h"

namespace uper::experiments::atari {

// A comparison: is `subject` better than `baseline`?
struct AgentPair {
  std::string subject;
  std::string baseline;
};

// A run that a figure of the paper needs and that was not given.
struct MissingRun {
  std::string agent;
  std::string game;
  std::int64_t seed = 0;
};

// Runs task(0..count-1), in any order, perhaps on several threads.
using TaskRunner = std::function<void(std::size_t count, const std::function<void(std::size_t)>&)>;

// Writes data.csv: the aggregates over `games` for each agent and frame mark (docs/files.md), with
// intervals from `replications` stratified resamples. Writes seeds.csv: the median over games of
// each complete seed. REQUIRES: every agent has a run in every game.
void WriteAggregateCurves(const ScoreTable& table, std::span<const std::string> agents,
                          std::span<const std::string> games, int replications,
                          const TaskRunner& run, const std::filesystem::path& folder);

// Writes the columns `agent,game,seed,frames,return,smoothed_return,normalised` for every run of
// these agents.
void WriteGameCurves(const ScoreTable& table, std::span<const std::string> agents,
                     const std::filesystem::path& file);

// Writes improvement.csv: the paper's C of each pair in each game that both agents have, on curves
// averaged over seeds. The cell is empty where C is undefined; the two sums then say why.
void WriteImprovements(const ScoreTable& table, std::span<const AgentPair> pairs,
                       const std::filesystem::path& file);

// The runs of these agents, games and seeds that are missing in the table.
std::vector<MissingRun> MissingRuns(const ScoreTable& table, std::span<const std::string> agents,
                                    std::span<const std::string> games,
                                    std::span<const std::int64_t> seeds);
void WriteMissing(std::span<const MissingRun> missing, const std::filesystem::path& file);

// Writes published.csv (source,agent,game,frames,value,low,high): published curves of the table's
// suite up to its last mark, normalized like the table. `game` is empty for a median over games.
void WritePublishedCurves(const ScoreTable& table, const std::filesystem::path& file);

// Notes on the pictures (about.json).
struct FigureNotes {
  std::vector<std::string> agents;
  std::vector<std::string> games;     // the games of the aggregates
  std::vector<std::string> enlarged;  // games with a panel of their own
  std::vector<std::string> notes;     // sentences about missing runs and omitted agents
};
void WriteNotes(const ScoreTable& table, const FigureNotes& notes,
                const std::filesystem::path& file);

}  // namespace uper::experiments::atari
