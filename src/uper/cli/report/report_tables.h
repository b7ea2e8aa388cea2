#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "experiments/atari/score_files.h"
#include "uper/stats/score_table.h"

namespace uper {

// The tables of `uper report`, at the last frame mark that all runs have. Each is written as CSV
// and, where it returns something, given back as a list of objects; an interval is {value, low,
// high}, a bound that is not finite null there and empty in the CSV. Aggregates and profiles are of
// the agents and games of ScoreTable::Comparable.

// One row a run: what was given.
void WriteRunTable(std::span<const RunCurve> runs, const ScoreTable& table,
                   const std::filesystem::path& file);

nlohmann::ordered_json WriteAggregates(const ScoreTable& table, std::span<const std::string> agents,
                                       const std::filesystem::path& file);
// Probability of improvement of each pair, over the games that both have.
nlohmann::ordered_json WriteComparisons(const ScoreTable& table,
                                        std::span<const experiments::AgentPair> pairs,
                                        const std::filesystem::path& file);
// Atari-5 and Atari-10 estimates of the agents that have the games.
nlohmann::ordered_json WriteSubsets(const ScoreTable& table, std::span<const std::string> agents,
                                    const std::filesystem::path& file);
// Performance profiles with intervals.
void WriteProfiles(const ScoreTable& table, std::span<const std::string> agents,
                   const std::filesystem::path& file);

}  // namespace uper
