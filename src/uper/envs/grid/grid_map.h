#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace uper {

enum class GridCell : char {
  kWall = '#',
  kFree = '.',
  kStart = 'S',
  kGoal = 'G',
  kNoisy = '~',
};

// "wall", "free", "start", "goal", "noisy".
std::string_view GridCellName(GridCell cell);

// The map of a gridworld: one character per cell (the enumerators above), one line per row, all
// rows of equal length. A valid map has exactly one start, at least one goal and a path from the
// start to a goal. Cells outside the map are walls, so the map needs no frame of '#'. Cells are
// numbered row by row: cell = row * columns + column, both from 0 at the top left. Immutable, hence
// thread-safe.
class GridMap {
 public:
  static constexpr int kMaxRows = 100;
  static constexpr int kMaxColumns = 100;
  static constexpr int kUnreachable = -1;

  // Throws Error(kUsage) that names `source` (a file, for the message), row and column (counted
  // from 1) and the problem.
  static GridMap Parse(std::string_view text, const std::string& source);
  // Parses a file; Error(kUsage) also when it cannot be read.
  static GridMap Load(const std::filesystem::path& file);

  int rows() const { return rows_; }
  int columns() const { return columns_; }
  int cell_count() const { return rows_ * columns_; }
  int start() const { return start_; }
  GridCell cell(int index) const { return cells_[static_cast<std::size_t>(index)]; }

  // The cell one move away, or `from` itself if a wall or the edge blocks the move. REQUIRES: -1 <=
  // row_step, column_step <= 1.
  int Neighbor(int from, int row_step, int column_step) const;

  // Fewest moves from the start to each cell, kUnreachable for walls and closed-off cells.
  std::span<const int> distances() const { return distances_; }
  // Fewest moves from the start to the nearest goal.
  int goal_distance() const { return goal_distance_; }

 private:
  GridMap() = default;
  void FindStart(const std::string& source);
  void MeasureDistances();
  void FindGoal(const std::string& source);

  int rows_ = 0;
  int columns_ = 0;
  int start_ = 0;
  int goal_distance_ = 0;
  std::vector<GridCell> cells_;  // [row, column]
  std::vector<int> distances_;   // [row, column]
};

// The map of our reproduction, the same text as configs/gridworld.map (a test compares them). The
// paper's map is not published. This one has the properties that the paper describes. At the start
// there is a corridor of very noisy cells, with a way around it. Then a long path (at least 16
// moves) leads to a single large deterministic reward. Plain Q-learning solves it. A uniform random
// walk finds the goal within the paper's 1000 steps in 71 % of the episodes. (We dropped a first
// draft of 10 x 10 cells and 24 moves because Q-learning did not solve it: noise and maximization
// gave false values near the start that outlasted 150 episodes.)
std::string_view DefaultGridMapText();
GridMap DefaultGridMap();

}  // namespace uper
