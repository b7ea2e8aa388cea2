#include "uper/envs/minatar/bit_board.h"

#include <algorithm>

namespace uper::minatar {

void BitBoard::AddBlock(int row_begin, int row_end, int column_begin, int column_end) {
  const int mask = Bit(column_end) - Bit(column_begin);
  for (int row = row_begin; row < row_end; ++row) Row(row) |= mask;
}

void BitBoard::Remove(const BitBoard& other) {
  for (int row = 0; row < kBoardSize; ++row) Row(row) &= ~other.Row(row);
}

int BitBoard::Count() const {
  int count = 0;
  for (const int row : rows_) count += std::popcount(static_cast<unsigned>(row));
  return count;
}

int BitBoard::LowestInColumn(int column) const {
  int row = kLastCell;
  while (row > 0 && !Has(row, column)) --row;
  return row;
}

BitBoard BitBoard::Intersection(const BitBoard& other) const {
  BitBoard both = *this;
  for (int row = 0; row < kBoardSize; ++row) both.Row(row) &= other.Row(row);
  return both;
}

void BitBoard::ShiftUp() {
  std::rotate(rows_.begin(), rows_.begin() + 1, rows_.end());
  rows_.back() = 0;
}

void BitBoard::ShiftDown() {
  RotateDown();
  rows_.front() = 0;
}

void BitBoard::RotateDown() { std::rotate(rows_.begin(), rows_.end() - 1, rows_.end()); }

void BitBoard::ShiftLeft() {
  for (int& row : rows_) row >>= 1;
}

void BitBoard::ShiftRight() {
  for (int& row : rows_) row = (row << 1) & (Bit(kBoardSize) - 1);
}

int BitBoard::Columns() const {
  int columns = 0;
  for (const int row : rows_) columns |= row;
  return columns;
}

void BitBoard::Draw(Frame& frame, int channel) const {
  for (int row = 0; row < kBoardSize; ++row) {
    for (auto rest = static_cast<unsigned>(Row(row)); rest != 0; rest &= rest - 1) {
      frame.Set(row, std::countr_zero(rest), channel);
    }
  }
}

}  // namespace uper::minatar
