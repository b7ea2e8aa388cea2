#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "uper/envs/minatar/minatar_game.h"

namespace uper::minatar {

// A set of cells of the board: one word per row, bit c for column c.
class BitBoard {
 public:
  bool Has(int row, int column) const { return (Row(row) >> column & 1) != 0; }
  void Add(int row, int column) { Row(row) |= Bit(column); }
  void Remove(int row, int column) { Row(row) &= ~Bit(column); }
  // Rows [row_begin, row_end) x columns [column_begin, column_end).
  void AddBlock(int row_begin, int row_end, int column_begin, int column_end);
  void Remove(const BitBoard& other);

  int Count() const;
  bool IsEmpty() const { return Columns() == 0; }
  bool HasInRow(int row) const { return Row(row) != 0; }
  bool HasInColumn(int column) const { return (Columns() >> column & 1) != 0; }
  // The lowest cell of a column. REQUIRES: HasInColumn(column).
  int LowestInColumn(int column) const;
  BitBoard Intersection(const BitBoard& other) const;

  // Cells that leave the board vanish.
  void ShiftUp();
  void ShiftDown();
  void ShiftLeft();
  void ShiftRight();
  // As ShiftDown(), but the bottom row comes back at the top.
  void RotateDown();

  void Draw(Frame& frame, int channel) const;

  template <typename Archive, typename Board>
  static void VisitState(Archive& archive, Board& board) {
    for (auto& row : board.rows_) archive.Int(row, 0, (1 << kBoardSize) - 1);
  }

 private:
  static int Bit(int column) { return 1 << column; }
  int& Row(int row) { return rows_[static_cast<std::size_t>(row)]; }
  const int& Row(int row) const { return rows_[static_cast<std::size_t>(row)]; }
  // Bit c: column c has a cell.
  int Columns() const;

  std::array<int, kBoardSize> rows_{};
};

}  // namespace uper::minatar
