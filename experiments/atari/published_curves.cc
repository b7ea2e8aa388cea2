#include <algorithm>
#include <cctype>
#include <optional>

#include "experiments/atari/score_files.h"
#include "uper/base/files/csv_writer.h"
#include "uper/stats/csv_reader.h"
#include "uper/stats/data_files.h"

namespace uper::experiments::atari {
namespace {

CsvTable ReadData(const char* name) { return CsvTable(DataFileText(name), name); }

bool IsShown(const ScoreTable& table, double frames) {
  return frames <= static_cast<double>(table.marks().back());
}

// "SpaceInvaders" -> "space_invaders".
std::string SnakeCase(const std::string& name) {
  std::string text;
  for (const char c : name) {
    const bool upper = std::isupper(static_cast<unsigned char>(c)) != 0;
    if (upper && !text.empty()) text += '_';
    text += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return text;
}

bool Contains(const std::vector<std::string>& names, const std::string& name) {
  return std::binary_search(names.begin(), names.end(), name);
}

// Medians over 57 games, in percent, with the range over seeds.
void AddDqnZooMedians(const ScoreTable& table, CsvWriter& csv) {
  const CsvTable data = ReadData("dqnzoo-median.csv");
  const auto percent = [&](std::size_t row, const char* column) {
    return data.Number(row, data.Column(column)).value() / 100;
  };
  for (std::size_t row = 0; row < data.rows(); ++row) {
    const double frames = data.Number(row, data.Column("frames")).value();
    if (!IsShown(table, frames)) continue;
    csv.Row("DQN Zoo", data.Text(row, data.Column("agent")), "", frames,
            percent(row, "median_hns_percent"), percent(row, "seed_min_percent"),
            percent(row, "seed_max_percent"));
  }
}

// Returns of single games: the mean, and the standard deviation over runs if it was published.
void AddGames(const ScoreTable& table, const CsvTable& data, const std::string& source,
              const char* mean_column, CsvWriter& csv) {
  const std::optional<std::size_t> deviation = data.Find("std");
  const std::optional<std::size_t> origin = data.Find("source");
  for (std::size_t row = 0; row < data.rows(); ++row) {
    const std::string game = SnakeCase(data.Text(row, data.Column("game")));
    const double frames = data.Number(row, data.Column("frames")).value();
    if (!Contains(table.games(), game) || !IsShown(table, frames)) continue;
    const double mean = data.Number(row, data.Column(mean_column)).value();
    const double spread = deviation ? data.Number(row, *deviation).value_or(0) : 0;
    const ReferenceScore& reference = table.reference(game);
    csv.Row(origin ? data.Text(row, *origin) : source, data.Text(row, data.Column("agent")), game,
            frames, NormalizedScore(mean, reference), NormalizedScore(mean - spread, reference),
            NormalizedScore(mean + spread, reference));
  }
}

}  // namespace

void WritePublishedCurves(const ScoreTable& table, const std::filesystem::path& file) {
  CsvWriter csv(file, {"source", "agent", "game", "frames", "value", "low", "high"});
  if (table.suite() == "atari") {
    AddDqnZooMedians(table, csv);
    AddGames(table, ReadData("dopamine-curves.csv"), "Dopamine", "mean", csv);
  } else if (table.suite() == "minatar") {
    AddGames(table, ReadData("minatar-curves.csv"), "MinAtar", "mean_return", csv);
  }
  csv.Commit();
}

}  // namespace uper::experiments::atari
