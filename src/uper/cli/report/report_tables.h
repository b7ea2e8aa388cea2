#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "experiments/atari/score_files.h"
#include "uper/stats/score_table.h"

namespace uper::cli {

// The tables of `uper report`, at the last frame mark that all runs have. Each function writes a
// CSV file; some also return the rows as a list of objects. An interval is {value, low, high}. A
// bound that is not finite is null there and empty in the CSV. Aggregates and profiles cover the
// agents and games of ScoreTable::Comparable.

// One row per run.
void WriteRunTable(std::span<const RunCurve> runs, const ScoreTable& table,
                   const std::filesystem::path& file);

nlohmann::ordered_json WriteAggregates(const ScoreTable& table, std::span<const std::string> agents,
                                       const std::filesystem::path& file);
// Probability of improvement of each pair, over the games that both have.
nlohmann::ordered_json WriteComparisons(const ScoreTable& table,
                                        std::span<const experiments::atari::AgentPair> pairs,
                                        const std::filesystem::path& file);
// Atari-5 and Atari-10 estimates for the agents that played their games.
nlohmann::ordered_json WriteSubsets(const ScoreTable& table, std::span<const std::string> agents,
                                    const std::filesystem::path& file);
// Performance profiles with intervals.
void WriteProfiles(const ScoreTable& table, std::span<const std::string> agents,
                   const std::filesystem::path& file);

}  // namespace uper::cli
