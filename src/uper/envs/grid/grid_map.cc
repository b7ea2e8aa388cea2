#include "uper/envs/grid/grid_map.h"

#include <algorithm>
#include <array>
#include <deque>
#include <fstream>

#include "uper/base/error.h"

namespace uper {
namespace {

constexpr std::string_view kDefaultGridMapText = R"(########
#S~~~..#
#......#
#####..#
#......#
#..#####
#.....G#
########
)";

[[noreturn]] void Fail(const std::string& source, const std::string& problem) {
  throw Error(ErrorKind::kUsage, "map " + source + ": " + problem);
}

// "row 2, column 5", counted from 1 as editors do.
std::string Place(std::size_t row, std::size_t column) {
  return "row " + std::to_string(row + 1) + ", column " + std::to_string(column + 1);
}

// The lines without their ends ("\n" or "\r\n"); the last line's end is optional.
std::vector<std::string_view> SplitLines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

void CheckShape(const std::vector<std::string_view>& lines, const std::string& source) {
  if (lines.empty()) Fail(source, "it is empty");
  if (lines.size() > GridMap::kMaxRows) {
    Fail(source, "more than " + std::to_string(GridMap::kMaxRows) + " rows");
  }
  for (std::size_t row = 0; row < lines.size(); ++row) {
    const std::string name = "row " + std::to_string(row + 1);
    if (lines[row].empty()) Fail(source, name + " is empty");
    if (lines[row].size() > GridMap::kMaxColumns) {
      Fail(source, name + " has more than " + std::to_string(GridMap::kMaxColumns) + " columns");
    }
    if (lines[row].size() != lines[0].size()) {
      Fail(source, name + " has " + std::to_string(lines[row].size()) +
                       " columns where the first row has " + std::to_string(lines[0].size()));
    }
  }
}

// The character in quotes, or its code where it cannot be shown.
std::string Shown(char character) {
  const auto code = static_cast<unsigned char>(character);
  if (code > 0x20 && code < 0x7f) return std::string("'") + character + "'";
  return "(code " + std::to_string(code) + ")";
}

GridCell ParseCell(char character, std::size_t row, std::size_t column, const std::string& source) {
  if (std::string_view("#.SG~").find(character) == std::string_view::npos) {
    Fail(source, Place(row, column) + ": unknown character " + Shown(character) +
                     " (# wall, . free, S start, G goal, ~ noisy)");
  }
  return static_cast<GridCell>(character);
}

}  // namespace

std::string_view GridCellName(GridCell cell) {
  switch (cell) {
    case GridCell::kWall:
      return "wall";
    case GridCell::kFree:
      return "free";
    case GridCell::kStart:
      return "start";
    case GridCell::kGoal:
      return "goal";
    case GridCell::kNoisy:
      return "noisy";
  }
  return "unknown";
}

GridMap GridMap::Parse(std::string_view text, const std::string& source) {
  const std::vector<std::string_view> lines = SplitLines(text);
  CheckShape(lines, source);
  GridMap map;
  map.rows_ = static_cast<int>(lines.size());
  map.columns_ = static_cast<int>(lines[0].size());
  for (std::size_t row = 0; row < lines.size(); ++row) {
    for (std::size_t column = 0; column < lines[row].size(); ++column) {
      map.cells_.push_back(ParseCell(lines[row][column], row, column, source));
    }
  }
  map.FindStart(source);
  map.MeasureDistances();
  map.FindGoal(source);
  return map;
}

GridMap GridMap::Load(const std::filesystem::path& file) {
  // Longer than any valid map, but short enough that a device or a large file cannot exhaust the
  // memory.
  std::string text(std::size_t{2} * kMaxRows * (kMaxColumns + 2), '\0');
  std::ifstream stream(file, std::ios::binary);
  if (!stream) Fail(file.string(), "the file cannot be opened");
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (stream.bad()) Fail(file.string(), "the file cannot be read");
  text.resize(static_cast<std::size_t>(stream.gcount()));
  return Parse(text, file.string());
}

int GridMap::Neighbor(int from, int row_step, int column_step) const {
  const int row = from / columns_ + row_step;
  const int column = from % columns_ + column_step;
  if (row < 0 || row >= rows_ || column < 0 || column >= columns_) return from;
  const int to = row * columns_ + column;
  return cell(to) == GridCell::kWall ? from : to;
}

void GridMap::FindStart(const std::string& source) {
  int starts = 0;
  for (int index = 0; index < cell_count(); ++index) {
    if (cell(index) != GridCell::kStart) continue;
    if (++starts > 1) {
      Fail(source, Place(index / columns_, index % columns_) + ": a second start 'S' (the first: " +
                       Place(start_ / columns_, start_ % columns_) + ")");
    }
    start_ = index;
  }
  if (starts == 0) Fail(source, "no start 'S'");
}

// Breadth-first search from the start.
void GridMap::MeasureDistances() {
  constexpr std::array<std::array<int, 2>, 4> kMoves = {{{-1, 0}, {1, 0}, {0, -1}, {0, 1}}};
  distances_.assign(cells_.size(), kUnreachable);
  distances_[start_] = 0;
  std::deque<int> frontier = {start_};
  while (!frontier.empty()) {
    const int from = frontier.front();
    frontier.pop_front();
    for (const auto& [row_step, column_step] : kMoves) {
      const int to = Neighbor(from, row_step, column_step);
      if (distances_[to] != kUnreachable) continue;
      distances_[to] = distances_[from] + 1;
      frontier.push_back(to);
    }
  }
}

void GridMap::FindGoal(const std::string& source) {
  bool any_goal = false;
  goal_distance_ = kUnreachable;
  for (int index = 0; index < cell_count(); ++index) {
    if (cell(index) != GridCell::kGoal) continue;
    any_goal = true;
    const int distance = distances_[index];
    if (distance == kUnreachable) continue;
    if (goal_distance_ == kUnreachable || distance < goal_distance_) goal_distance_ = distance;
  }
  if (!any_goal) Fail(source, "no goal 'G'");
  if (goal_distance_ == kUnreachable) Fail(source, "no path from the start 'S' to a goal 'G'");
}

std::string_view DefaultGridMapText() { return kDefaultGridMapText; }

GridMap DefaultGridMap() { return GridMap::Parse(kDefaultGridMapText, "(built in)"); }

}  // namespace uper
